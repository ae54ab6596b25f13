#include "tools/trainyard/cli/sweep_display.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <pty.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::tools;
using experiments::Phase;
using experiments::Progress;

namespace {

// A display on a terminal with this number of columns, of a sweep of two runs that take 100 s each.
class Screen {
 public:
  explicit Screen(unsigned short columns) {
    int program = -1, terminal = -1;
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::openpty(&program, &terminal, nullptr, nullptr, &size) == 0);
    reader_ = FileDescriptor(program);
    terminal_ = FileDescriptor(terminal);
    for (const std::uint64_t seed : {0U, 1U}) {
      orchestrator::PlannedRun run;
      run.run.model = "mlp";
      run.run.strategy.name = "ddp";
      run.run.seed = seed;
      run.expected_seconds = 100;
      plan.runs.push_back(run);
    }
    display = sweep_display(terminal);
    display->sweep_started(plan);
    display->run_started(plan.runs[0], 1);
  }

  // The frame after this progress, without older ones.
  std::string frame(const Progress& progress) {
    text();
    display->run_progress(plan.runs[0], progress);
    display->message("now");
    const std::string all = text();
    return all.substr(all.rfind("now\r\n") + 5);
  }
  // Since the last call. The kernel passes text on later, so a last byte is waited for.
  std::string text() const {
    constexpr char last = '\1';
    REQUIRE(::write(terminal_.get(), &last, 1) == 1);
    std::string read;
    std::array<char, 4096> block{};
    while (!read.ends_with(last)) {
      const ssize_t size = ::read(reader_.get(), block.data(), block.size());
      REQUIRE(size > 0);
      read.append(block.data(), static_cast<std::size_t>(size));
    }
    read.pop_back();
    return read;
  }

  orchestrator::Plan plan;
  std::unique_ptr<orchestrator::Status> display;

 private:
  FileDescriptor reader_, terminal_;
};

Progress at(Phase phase, std::uint32_t epoch, std::uint64_t step) {
  return {.phase = phase,
          .epoch = epoch,
          .epochs = 4,
          .step = step,
          .steps = 10,
          .loss = 0.4123,
          .accuracy = 0.871};
}

}  // namespace

TEST_CASE("a frame has epoch, step, loss, accuracy, rate and time left of the run, and the sweep below") {
  Screen screen(132);
  Progress now = at(Phase::train, 1, 1);
  now.stamp = 1'000'000'000;
  screen.frame(now);
  now.step = 3;
  now.stamp = 1'500'000'000;
  CHECK(screen.frame(now) ==
        "mlp ddp seed 0  ━───────────────  epoch 1/4  step  3/10  loss 0.412  acc 87.1 %  4.0 steps/s  left "
        "1:40\r\n"
        "0/2 runs        ────────────────  elapsed 0:00  left 3:20");
  CHECK(
      contains(screen.frame({.phase = Phase::probe, .epochs = 4, .step = 1, .steps = 2}), "parity step 1/2"));
  CHECK(contains(screen.frame(at(Phase::validation, 2, 10)), "epoch 2/4  validation  left"));
  now.loss = now.accuracy = std::nan("");
  CHECK(contains(screen.frame(now), "step  3/10  "));
  for (const char* undefined : {"loss", "acc", "nan"}) CHECK_FALSE(contains(screen.frame(now), undefined));
}

TEST_CASE("no line is wider than the terminal") {
  Screen narrow(40), narrower(12);
  CHECK(contains(narrow.frame(at(Phase::train, 1, 3)), "mlp ddp seed 0  ━───────────────  epoc…\r\n"));
  CHECK(contains(narrower.frame(at(Phase::train, 1, 3)), "mlp ddp se…\r\n"));
}

TEST_CASE("the cursor is hidden while lines are redrawn, and restored at any end") {
  Screen screen(80);
  const std::string before = screen.text();
  CHECK(contains(before, "\033[?25l2 runs: 2 to run, about 3 min 20 s"));
  CHECK_FALSE(contains(before, "\033[?25h"));
  screen.display->sweep_ended();
  screen.display->message("after");
  CHECK(screen.text().ends_with("\033[J\033[?25hafter\r\n"));
  Screen ended_early(80);
  ended_early.display.reset();
  CHECK(ended_early.text().ends_with("\033[J\033[?25h"));
}

TEST_CASE(
    "ended runs stay on the screen above the lines of active runs, without colours if NO_COLOR is set") {
  ::setenv("NO_COLOR", "1", 1);
  Screen screen(80);
  ::unsetenv("NO_COLOR");
  screen.text();
  orchestrator::RunOutcome finished, failed;
  finished.seconds = 4.2;
  finished.test_accuracy = 0.931;
  screen.display->run_ended(screen.plan.runs[0], finished);
  screen.display->run_started(screen.plan.runs[1], 2);
  failed.reason = experiments::EndReason::failed;
  failed.seconds = 2;
  failed.first_error = "boom\033[31m";
  failed.log = "/yard/rank-0.log";
  screen.display->run_ended(screen.plan.runs[1], failed);
  const std::string all = screen.text();
  CHECK(contains(all, "\033[J✓ mlp ddp seed 0  finished in 4.2 s, test accuracy 93.1 %\r\n1/2 runs"));
  CHECK(contains(all, "mlp ddp seed 1 (attempt 2)  ──"));
  CHECK(
      contains(all, "✗ mlp ddp seed 1  failed after 2.0 s: boom\\u001b[31m\r\n  log: /yard/rank-0.log\r\n"));
  CHECK(contains(all, "2/2 runs  ━━━━━━━━━━━━━━━━  1 failed"));
}

TEST_CASE("the fraction of a run that is done is from its epochs and steps") {
  using experiments::Phase;
  CHECK(fraction_done(at(Phase::setup, 0, 0)) == 0);
  CHECK(fraction_done(at(Phase::train, 1, 5)) == doctest::Approx(0.125));
  CHECK(fraction_done(at(Phase::train, 3, 0)) == doctest::Approx(0.5));
  CHECK(fraction_done(at(Phase::validation, 3, 10)) == doctest::Approx(0.75));
  CHECK(fraction_done(at(Phase::test, 4, 0)) == 1);
}

TEST_CASE("the time left of a run is first that of its kind, and later from its own speed") {
  CHECK_FALSE(seconds_left(0, 1, std::nullopt));
  CHECK(seconds_left(0.05, 2, 10) == 8);
  CHECK(seconds_left(0.05, 12, 10) == 0);
  CHECK(*seconds_left(0.25, 3, 100) == doctest::Approx(9));
}
