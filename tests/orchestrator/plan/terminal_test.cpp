#include <cmath>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"
#include "orchestrator/plan/progress_bars.h"
#include "orchestrator/plan/status.h"
#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

TerminalView view() {
  RunBar run;
  run.label = "mlp ddp seed 1";
  run.progress = {.phase = experiments::Phase::train,
                  .epoch = 4,
                  .epochs = 10,
                  .step = 7,
                  .steps = 16,
                  .loss = 0.4123,
                  .accuracy = 0.871};
  run.fraction = 0.34375;
  run.steps_per_second = 38.4;
  run.seconds_left = 3;
  TerminalView result;
  result.runs = {run};
  result.sweep = {
      .done = 3, .failed = 1, .total = 20, .fraction = 0.25, .elapsed_seconds = 12, .seconds_left = 90};
  return result;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a bar is drawn in half columns and has the requested width") {
  CHECK(bar(0, 4, false) == "────");
  CHECK(bar(0.5, 4, false) == "━━──");
  CHECK(bar(0.625, 4, false) == "━━╸─");
  CHECK(bar(1, 4, false) == "━━━━");
  CHECK(bar(7, 4, false) == "━━━━");
  CHECK(trainyard::columns(bar(0.3, 17, true)) == 17);
}

TEST_CASE("a frame has epoch, step, loss, accuracy, rate and time left of the run, and the sweep below") {
  CHECK(draw(view(), 120, false) ==
        Lines{"mlp ddp seed 1  ━━━━━━━━────────────────  epoch  4/10  step  7/16  loss 0.412  acc 87.1 %  38 "
              "steps/s"
              "  left 0:03",
              "3/20 runs       ━━━━━━──────────────────  1 failed  elapsed 0:12  left 1:30"});
}

TEST_CASE("a run in its parity check is displayed with the step of the check") {
  TerminalView probed = view();
  probed.runs[0].progress = {.phase = experiments::Phase::probe, .epochs = 10, .step = 1, .steps = 2};
  CHECK(draw(probed, 120, false)[0].find("epoch  0/10  parity step 1/2") != std::string::npos);
}

TEST_CASE("colours change no column") {
  const auto plain = draw(view(), 120, false);
  const auto coloured = draw(view(), 120, true);
  REQUIRE(coloured.size() == plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(coloured[i].find("\033[") != std::string::npos);
    CHECK(trainyard::columns(coloured[i]) == trainyard::columns(plain[i]));
  }
}

TEST_CASE("no line is wider than the terminal, and the least important parts are dropped first") {
  for (std::size_t width = 1; width <= 130; ++width)
    for (const auto& line : draw(view(), width, true)) CHECK(trainyard::columns(line) <= width);
  const auto narrow = draw(view(), 60, false)[0];
  CHECK(narrow.find("step  7/16") != std::string::npos);
  CHECK(narrow.find("steps/s") == std::string::npos);
}

TEST_CASE("an undefined loss or accuracy is not displayed") {
  TerminalView undefined = view();
  undefined.runs[0].progress.loss = std::nan("");
  undefined.runs[0].progress.accuracy = std::nan("");
  const auto line = draw(undefined, 120, false)[0];
  CHECK(line.find("loss") == std::string::npos);
  CHECK(line.find("acc") == std::string::npos);
}

TEST_CASE("the cursor is hidden while bars are drawn, and restored at any end") {
  const TemporaryFolder folder;
  const auto file = folder.path / "screen";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Plan plan;
  plan.runs.emplace_back();
  plan.runs[0].run = mlp_run("single", 1, 0);
  {
    const auto status = terminal_status(fd);
    status->sweep_started(plan);
    status->run_started(plan.runs[0], 1);
    CHECK(text_of(file).find("\033[?25l") != std::string::npos);
    CHECK(text_of(file).find("\033[?25h") == std::string::npos);
  }
  ::close(fd);
  CHECK(text_of(file).ends_with("\033[?25h"));
}

TEST_CASE("ended runs stay on the screen above the bars, without colours if NO_COLOR is set") {
  const TemporaryFolder folder;
  const auto file = folder.path / "screen";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::setenv("NO_COLOR", "1", 1);
  Plan plan;
  plan.runs.emplace_back();
  plan.runs[0].run = mlp_run("single", 1, 0);
  const auto status = terminal_status(fd);
  status->sweep_started(plan);
  status->run_started(plan.runs[0], 1);
  RunOutcome outcome;
  outcome.seconds = 4.2;
  outcome.test_accuracy = 0.931;
  status->run_ended(plan.runs[0], outcome);
  status->sweep_ended();
  ::unsetenv("NO_COLOR");
  ::close(fd);
  const std::string screen = text_of(file);
  CHECK(screen.find("✓ mlp single seed 0  finished in 4.2 s, test accuracy 93.1 %\n") != std::string::npos);
  CHECK(screen.find("m✓") == std::string::npos);
}
