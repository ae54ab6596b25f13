// bench_verdicts [SWEEPS] [SEED]: simulate the error rates of verdicts, and print them as a Markdown table.
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/verdict_simulation.h"
#include "reports/format/number_text.h"

namespace {

using trainyard::reports::fixed;

std::string percent(double rate, std::int64_t trials) {
  return fixed(100 * rate, 2) + " ± " + fixed(100 * trainyard::bench::standard_error(rate, trials), 2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t sweeps = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::cout
      << "| effects | spread | n per analysis | false IMPROVES % | false DETERIORATES % | false NO CHANGE % "
         "| 95 % interval covers % | cells decided % | NO CHANGE found % |\n"
         "|---|---:|---|---:|---:|---:|---:|---:|---:|\n";
  for (const auto& sweep : trainyard::bench::usual_sweeps()) {
    const auto rates = trainyard::bench::simulate(sweep, sweeps, seed);
    const auto cells = sweeps * static_cast<std::int64_t>(sweep.effects.size());
    std::cout << "| " << sweep.name << " | " << fixed(sweep.spread, 1) << " δ | "
              << fmt::format("{}", fmt::join(sweep.looks, ", ")) << " | "
              << percent(rates.false_improves, sweeps) << " | " << percent(rates.false_deteriorates, sweeps)
              << " | " << percent(rates.false_no_change, sweeps) << " | " << percent(rates.covered, cells)
              << " | " << fixed(100 * rates.decided, 1) << " | "
              << (rates.no_change > 0 ? fixed(100 * rates.no_change, 1) : std::string("–")) << " |\n"
              << std::flush;
  }
}
