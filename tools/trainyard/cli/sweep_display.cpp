#include "tools/trainyard/cli/sweep_display.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fd.h"
#include "base/text.h"
#include "experiments/run/run.h"
#include "orchestrator/sweep/watchdog.h"
#include "tools/trainyard/cli/terminal.h"

namespace trainyard::tools {

namespace {

using experiments::Phase;
using experiments::Progress;
using orchestrator::PlannedRun;
using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);

struct ActiveRun {
  const PlannedRun* planned = nullptr;
  std::string label;
  Clock::time_point started = Clock::now();
  Progress progress = {};
  std::optional<double> steps_per_second = {};
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The rate is smoothed, because a step can be much longer than others.
void take_progress(ActiveRun& run, const Progress& now) {
  const Progress before = std::exchange(run.progress, now);
  if (now.phase != Phase::train || before.phase != Phase::train || now.epoch != before.epoch ||
      now.stamp <= before.stamp || now.step < before.step)
    return;
  const double rate =
      1e9 * static_cast<double>(now.step - before.step) / static_cast<double>(now.stamp - before.stamp);
  run.steps_per_second = run.steps_per_second ? 0.7 * *run.steps_per_second + 0.3 * rate : rate;
}

// "step  7/16": the width is constant.
std::string count_of(const char* what, std::uint64_t done, std::uint64_t all) {
  const std::string total = std::to_string(all);
  return fmt::format("{} {:>{}}/{}", what, done, total.size(), total);
}

// Parts to the right of a run's bar, the most important first.
std::vector<std::string> parts_of(const ActiveRun& run, std::optional<double> left) {
  const Progress& now = run.progress;
  std::vector<std::string> parts;
  if (now.epochs > 0) parts.push_back(count_of("epoch", now.epoch, now.epochs));
  if (now.phase == Phase::train || now.phase == Phase::probe)
    parts.push_back(count_of(now.phase == Phase::probe ? "parity step" : "step", now.step, now.steps));
  else
    parts.emplace_back(orchestrator::phase_name(now.phase));
  if (now.phase == Phase::train && now.step > 0) {
    if (std::isfinite(now.loss)) parts.push_back(fmt::format("loss {:.3f}", now.loss));
    if (std::isfinite(now.accuracy)) parts.push_back("acc " + orchestrator::percent_text(now.accuracy));
    if (const auto rate = run.steps_per_second)
      parts.push_back(fmt::format("{:.{}f} steps/s", *rate, *rate < 10 ? 1 : 0));
  }
  if (left) parts.push_back("left " + clock_text(*left));
  return parts;
}

// "label  ━━━━━────  part  part"
std::string line(const std::string& label, double fraction, const std::vector<std::string>& parts,
                 std::size_t width) {
  constexpr std::size_t bar_width = 16;
  const auto full = static_cast<std::size_t>(fraction * bar_width);
  std::string text = label + "  ";
  for (std::size_t i = 0; i < bar_width; ++i) text += i < full ? "━" : "─";
  for (const std::string& part : parts) text += "  " + part;
  return shortened(text, width);
}

class SweepDisplay : public orchestrator::Status {
 public:
  explicit SweepDisplay(int terminal) : terminal_(terminal) {
    const char* no_colour = std::getenv("NO_COLOR");
    colour_ = no_colour == nullptr || *no_colour == '\0';
  }
  ~SweepDisplay() override { SweepDisplay::sweep_ended(); }
  SweepDisplay(const SweepDisplay&) = delete;
  SweepDisplay& operator=(const SweepDisplay&) = delete;

  void sweep_started(const orchestrator::Plan& plan) override {
    total_ = plan.to_run();
    at_most_ = plan.until_decided;
    expected_ = plan.expected_seconds();
    started_ = Clock::now();
    put("\033[?25l" + orchestrator::plan_text(plan) + "\n");  // hides the cursor
    live_ = true;
  }

  void run_started(const PlannedRun& run, int attempt) override {
    std::string label = experiments::label(run.run);
    if (attempt > 1) label += fmt::format(" (attempt {})", attempt);
    active_.push_back({.planned = &run, .label = std::move(label)});
    redraw();
  }

  void run_progress(const PlannedRun& run, const Progress& progress) override {
    for (ActiveRun& active : active_)
      if (active.planned == &run) take_progress(active, progress);
    if (Clock::now() - drawn_at_ >= redraw_interval) redraw();
  }

  void run_ended(const PlannedRun& run, const orchestrator::RunOutcome& outcome) override {
    const bool finished = outcome.reason == experiments::EndReason::finished;
    if (!outcome.retry_seconds) {
      ++done_;
      if (experiments::is_failure(outcome.reason)) ++failed_;
    }
    active_.remove_if([&](const ActiveRun& active) { return active.planned == &run; });
    std::string text = finished ? "✓" : "✗";
    if (colour_) text = (finished ? "\033[32m" : "\033[31m") + text + "\033[0m";
    text += " " + printable(experiments::label(run.run) + "  " + outcome_text(outcome) + "\n");
    if (!outcome.log.empty()) text += printable("  log: " + outcome.log + "\n");
    redraw(text);
  }

  void not_needed(std::size_t runs) override {
    not_needed_ = runs;
    redraw();
  }

  void message(const std::string& text) override { redraw(printable(text) + "\n"); }

  void sweep_ended() override {
    if (!live_) return;
    live_ = false;
    put(erased() + "\033[?25h");
    drawn_lines_ = 0;
  }

 private:
  std::vector<std::string> lines() const {
    const std::size_t width =
        std::max<std::size_t>(output_width(terminal_), 1) - 1;  // it may have been resized
    const std::size_t all = total_ - not_needed_;
    const std::string total = fmt::format("{}/{}{} runs", done_, at_most_ ? "≤" : "", all);
    std::size_t label_width = columns(total);
    for (const ActiveRun& run : active_) label_width = std::max(label_width, columns(run.label));
    std::vector<std::string> lines;
    double done = static_cast<double>(done_);
    for (const ActiveRun& run : active_) {
      const double fraction = fraction_done(run.progress);
      done += fraction;
      const auto left = seconds_left(fraction, seconds_since(run.started), run.planned->expected_seconds);
      lines.push_back(line(padded(run.label, label_width), fraction, parts_of(run, left), width));
    }
    const double fraction = all > 0 ? done / static_cast<double>(all) : 1, elapsed = seconds_since(started_);
    std::vector<std::string> parts;
    if (failed_ > 0) parts.push_back(fmt::format("{} failed", failed_));
    parts.push_back("elapsed " + clock_text(elapsed));
    if (const auto left = seconds_left(fraction, elapsed, expected_))
      parts.push_back("left " + clock_text(*left));
    lines.push_back(line(padded(total, label_width), fraction, parts, width));
    return lines;
  }

  // Moves to the first line of the last frame and clears everything below.
  std::string erased() const {
    if (drawn_lines_ == 0) return "";
    return "\r" + (drawn_lines_ > 1 ? fmt::format("\033[{}A", drawn_lines_ - 1) : "") + "\033[J";
  }

  void redraw(const std::string& above = "") {
    const std::vector<std::string> frame = live_ ? lines() : std::vector<std::string>();
    put(erased() + above + fmt::format("{}", fmt::join(frame, "\n")));
    drawn_lines_ = frame.size();
    drawn_at_ = Clock::now();
  }

  // Ignores failed writes: the terminal is not evidence.
  void put(const std::string& text) const { write_all(terminal_, text); }

  int terminal_;
  bool colour_ = true, live_ = false, at_most_ = false;
  std::size_t total_ = 0, not_needed_ = 0, done_ = 0, failed_ = 0, drawn_lines_ = 0;
  std::optional<double> expected_;
  Clock::time_point started_ = Clock::now(), drawn_at_;
  std::list<ActiveRun> active_;
};

}  // namespace

std::unique_ptr<orchestrator::Status> sweep_display(int terminal) {
  return std::make_unique<SweepDisplay>(terminal);
}

double fraction_done(const Progress& progress) {
  if (progress.phase == Phase::done || progress.phase == Phase::test) return 1;
  if (progress.epochs == 0 || progress.epoch == 0) return 0;
  double epochs = progress.epoch - 1;
  if (progress.phase == Phase::validation)
    epochs += 1;
  else if (progress.steps > 0)
    epochs += static_cast<double>(progress.step) / static_cast<double>(progress.steps);
  return std::clamp(epochs / progress.epochs, 0.0, 1.0);
}

std::optional<double> seconds_left(double fraction, double elapsed, std::optional<double> expected) {
  constexpr double far_enough = 0.1;  // from here its own pace is the better estimate
  if (fraction < far_enough && expected) return std::max(0.0, *expected - elapsed);
  if (fraction <= 0) return std::nullopt;
  return elapsed * (1 - fraction) / fraction;
}

}  // namespace trainyard::tools
