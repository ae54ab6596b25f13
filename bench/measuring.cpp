// bench_measuring [STEPS]: the cost of measuring a training step, in nanoseconds. Two costs are measured:
// reading the clock to divide the time of a step into parts, and writing progress. Each is done as often as
// in a step of one rank.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "experiments/protocol/progress.h"
#include "runner/device/step_times.h"

using namespace trainyard;
using runner::TimeParts;

namespace {

// The clock readings of the epoch (trainer.cpp), of the step, and of the executor within the step.
void read_clocks_of_a_step(runner::PartWatch& epoch, runner::StepTimes& times) {
  epoch.lap(&TimeParts::data);
  runner::PartWatch step(times);
  {
    runner::PartWatch executor(times);
    for (const auto part :
         {&TimeParts::data, &TimeParts::forward, &TimeParts::backward, &TimeParts::transfer})
      executor.lap(part);
  }
  step.skip();
  for (const auto part :
       {&TimeParts::exposed_communication, &TimeParts::optimizer, &TimeParts::exposed_communication})
    step.lap(part);
  epoch.skip();
}

double nanoseconds_per_step(double seconds, long steps) {
  return 1e9 * seconds / static_cast<double>(steps);
}

}  // namespace

int main(int count, char** words) {
  const long steps = count > 1 ? std::atol(words[1]) : 5'000'000;
  if (steps <= 0) {
    std::fprintf(stderr, "usage: bench_measuring [STEPS], with STEPS >= 1\n");
    return 2;
  }
  const auto file =
      std::filesystem::temp_directory_path() / ("trainyard-measuring-" + std::to_string(getpid()));
  experiments::ProgressWriter progress(file);
  for (int round = 1; round <= 5; ++round) {
    runner::StepTimes times;
    runner::Stopwatch watch;
    runner::PartWatch epoch(times);
    for (long step = 0; step < steps; ++step) read_clocks_of_a_step(epoch, times);
    const double clocks = watch.lap();
    for (long step = 0; step < steps; ++step)
      if (progress.due()) progress.write({});
    const double writing = watch.lap();
    std::printf("round %d: per step clock %.0f ns, progress %.0f ns; per write %.0f ns\n", round,
                nanoseconds_per_step(clocks, steps), nanoseconds_per_step(writing, steps), [&] {
                  for (int i = 0; i < 10'000; ++i) progress.write({});
                  return nanoseconds_per_step(watch.lap(), 10'000);
                }());
  }
  std::filesystem::remove(file);
  return 0;
}
