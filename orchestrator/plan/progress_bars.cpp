#include "orchestrator/plan/progress_bars.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "experiments/run/run.h"
#include "orchestrator/plan/status.h"

namespace trainyard::orchestrator {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Steps per second of one run, smoothed over the readings of its progress file.
class Rate {
 public:
  void read(const experiments::Progress& now) {
    const bool goes_on = last_.phase == experiments::Phase::train && now.phase == last_.phase &&
                         now.epoch == last_.epoch && now.stamp > last_.stamp && now.step >= last_.step;
    if (goes_on) {
      const double current =
          static_cast<double>(now.step - last_.step) / (static_cast<double>(now.stamp - last_.stamp) * 1e-9);
      value_ = value_ ? 0.7 * *value_ + 0.3 * current : current;
    }
    last_ = now;
  }
  std::optional<double> value() const { return value_; }

 private:
  experiments::Progress last_;
  std::optional<double> value_;
};

struct ActiveRun {
  const PlannedRun* planned = nullptr;
  std::string label;
  Clock::time_point started = Clock::now();
  experiments::Progress progress;
  Rate rate;
};

class TerminalStatus : public Status {
 public:
  explicit TerminalStatus(int fd) : fd_(fd) {
    const char* no_colour = std::getenv("NO_COLOR");
    colour_ = no_colour == nullptr || *no_colour == '\0';
  }
  ~TerminalStatus() override { TerminalStatus::sweep_ended(); }
  TerminalStatus(const TerminalStatus&) = delete;
  TerminalStatus& operator=(const TerminalStatus&) = delete;

  void sweep_started(const Plan& plan) override {
    total_ = plan.to_run();
    times_ = RunTimes(plan);
    started_ = Clock::now();
    put("\033[?25l" + plan_text(plan) + "\n");
    live_ = true;
  }

  void run_started(const PlannedRun& run, int attempt) override {
    times_.started(run);
    std::string label = experiments::label(run.run);
    if (attempt > 1) label += fmt::format(" (attempt {})", attempt);
    ActiveRun& active = active_.emplace_back();
    active.planned = &run;
    active.label = std::move(label);
    redraw();
  }

  void run_progress(const PlannedRun& run, const experiments::Progress& progress) override {
    for (ActiveRun& active : active_) {
      if (active.planned != &run) continue;
      active.progress = progress;
      active.rate.read(progress);
    }
    if (Clock::now() - drawn_at_ >= redraw_interval) redraw();
  }

  void run_ended(const PlannedRun& run, const RunOutcome& outcome) override {
    const bool finished = outcome.reason == experiments::EndReason::finished;
    if (finished) times_.ended(run, outcome.seconds);
    if (outcome.retry_seconds) times_.waits_again(run);
    if (experiments::is_failure(outcome.reason) && !outcome.retry_seconds) ++failed_;
    if (!outcome.retry_seconds) ++done_;
    active_.remove_if([&](const ActiveRun& active) { return active.planned == &run; });
    std::string text =
        mark(finished) + " " + printable(experiments::label(run.run) + "  " + outcome_text(outcome) + "\n");
    if (!outcome.log.empty()) text += printable("  log: " + outcome.log + "\n");
    redraw(text);
  }

  void message(const std::string& text) override {
    const std::string line = printable(text) + "\n";
    if (live_)
      redraw(line);
    else
      put(line);
  }

  void sweep_ended() override {
    if (!live_) return;
    live_ = false;
    put(erase() + "\033[?25h");
    drawn_lines_ = 0;
  }

 private:
  std::string mark(bool good) const {
    std::string glyph = good ? "✓" : "✗";
    if (!colour_) return glyph;
    return (good ? "\033[32m" : "\033[31m") + glyph + "\033[0m";
  }

  TerminalView view() const {
    TerminalView view;
    double done = static_cast<double>(done_);
    std::optional<double> left = times_.waiting_seconds();
    for (const ActiveRun& active : active_) {
      RunBar run;
      run.label = active.label;
      run.progress = active.progress;
      run.fraction = fraction_done(active.progress);
      run.elapsed_seconds = seconds_since(active.started);
      run.steps_per_second = active.rate.value();
      run.seconds_left = seconds_left(run.fraction, run.elapsed_seconds, times_.expected(*active.planned));
      done += run.fraction;
      if (left && run.seconds_left) *left += *run.seconds_left;
      if (!run.seconds_left) left.reset();
      view.runs.push_back(std::move(run));
    }
    view.sweep = {
        done_, failed_, total_, total_ > 0 ? done / static_cast<double>(total_) : 1, seconds_since(started_),
        left};
    return view;
  }

  // Read for each frame, because the window may have been resized.
  std::size_t width() const {
    winsize size{};
    if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
  }

  // Moves to the first line of the last frame and clears everything below.
  std::string erase() const {
    if (drawn_lines_ == 0) return "";
    return "\r" + (drawn_lines_ > 1 ? "\033[" + std::to_string(drawn_lines_ - 1) + "A" : "") + "\033[J";
  }

  void redraw(const std::string& above = "") {
    std::string text = erase() + above;
    const auto lines = draw(view(), width() - 1, colour_);
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i];
    put(text);
    drawn_lines_ = lines.size();
    drawn_at_ = Clock::now();
  }

  // Ignores failed writes: the terminal is not evidence.
  void put(const std::string& text) const {
    [[maybe_unused]] const auto written = ::write(fd_, text.data(), text.size());
  }

  int fd_;
  bool colour_ = true;
  bool live_ = false;
  std::size_t total_ = 0, done_ = 0, failed_ = 0, drawn_lines_ = 0;
  Clock::time_point started_ = Clock::now(), drawn_at_;
  RunTimes times_;
  std::list<ActiveRun> active_;
};

}  // namespace

std::unique_ptr<Status> terminal_status(int fd) {
  return std::make_unique<TerminalStatus>(fd);
}

namespace {

constexpr std::size_t narrowest_bar = 8;
constexpr std::size_t widest_bar = 24;
constexpr const char* gap = "  ";

std::string dim(const std::string& text, bool colour) {
  return colour ? "\033[2m" + text + "\033[0m" : text;
}

std::string repeated(const char* glyph, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += glyph;
  return text;
}

std::string number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string count_of(const char* what, std::uint64_t done, std::uint64_t all) {
  const std::string total = std::to_string(all);
  std::string now = std::to_string(done);
  if (now.size() < total.size()) now.insert(0, total.size() - now.size(), ' ');  // constant width
  return std::string(what) + " " + now + "/" + total;
}

std::string phase_text(const experiments::Progress& progress) {
  switch (progress.phase) {
    case experiments::Phase::setup:
      return "starting";
    case experiments::Phase::probe:
      return count_of("parity step", progress.step, progress.steps);
    case experiments::Phase::train:
      return count_of("step", progress.step, progress.steps);
    case experiments::Phase::validation:
      return "validating";
    case experiments::Phase::test:
      return "testing";
    case experiments::Phase::done:
      return "ending";
  }
  return "";
}

// Parts to the right of a run's bar, the most important first.
std::vector<std::string> parts(const RunBar& run) {
  const auto& progress = run.progress;
  std::vector<std::string> result;
  if (progress.epochs > 0) result.push_back(count_of("epoch", progress.epoch, progress.epochs));
  result.push_back(phase_text(progress));
  const bool trains = progress.phase == experiments::Phase::train && progress.step > 0;
  if (trains && std::isfinite(progress.loss)) result.push_back("loss " + number("%.3f", progress.loss));
  if (trains && std::isfinite(progress.accuracy)) result.push_back("acc " + percent_text(progress.accuracy));
  if (trains && run.steps_per_second)
    result.push_back(number(*run.steps_per_second < 10 ? "%.1f" : "%.0f", *run.steps_per_second) +
                     " steps/s");
  if (run.seconds_left) result.push_back("left " + clock_text(*run.seconds_left));
  return result;
}

std::vector<std::string> parts(const SweepBar& sweep) {
  std::vector<std::string> result;
  if (sweep.failed > 0) result.push_back(fmt::format("{} failed", sweep.failed));
  result.push_back("elapsed " + clock_text(sweep.elapsed_seconds));
  if (sweep.seconds_left) result.push_back("left " + clock_text(*sweep.seconds_left));
  return result;
}

// "label  ━━━━━╸────  part  part". The bar uses the space that the parts leave.
std::string line(const std::string& label, double fraction, const std::vector<std::string>& right,
                 std::size_t width, bool colour) {
  std::size_t wanted = trainyard::columns(label);
  for (const auto& part : right) wanted += 2 + trainyard::columns(part);
  const std::size_t room = width > wanted + 2 ? width - wanted - 2 : 0;
  const std::size_t bar_width = std::clamp(room, narrowest_bar, widest_bar);
  if (trainyard::columns(label) + 2 + bar_width > width) return shortened(label, width);
  std::string text = label + gap + bar(fraction, bar_width, colour);
  std::size_t used = trainyard::columns(label) + 2 + bar_width;
  for (const auto& part : right) {
    used += 2 + trainyard::columns(part);
    if (used > width) break;
    text += gap + part;
  }
  return text;
}

}  // namespace

std::string bar(double fraction, std::size_t width, bool colour) {
  const auto halves =
      static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(2 * width));
  const std::size_t full = halves / 2;
  const bool half = halves % 2 == 1;
  const std::string done = repeated("━", full) + (half ? "╸" : "");
  const std::string rest = repeated("─", width - full - (half ? 1 : 0));
  if (!colour) return done + rest;
  return "\033[36m" + done + "\033[0m" + dim(rest, true);
}

std::vector<std::string> draw(const TerminalView& view, std::size_t width, bool colour) {
  const std::string total = fmt::format("{}/{} runs", view.sweep.done, view.sweep.total);
  std::size_t label_width = trainyard::columns(total);
  for (const RunBar& run : view.runs) label_width = std::max(label_width, trainyard::columns(run.label));
  std::vector<std::string> lines;
  lines.reserve(view.runs.size() + 1);
  for (const RunBar& run : view.runs)
    lines.push_back(line(padded(run.label, label_width), run.fraction, parts(run), width, colour));
  lines.push_back(line(padded(total, label_width), view.sweep.fraction, parts(view.sweep), width, colour));
  return lines;
}

namespace {
constexpr double far_enough = 0.1;  // of a run: from here its own pace is the better estimate
}

double fraction_done(const experiments::Progress& progress) {
  if (progress.phase == experiments::Phase::done || progress.phase == experiments::Phase::test) return 1;
  if (progress.epochs == 0 || progress.epoch == 0) return 0;
  double epochs = progress.epoch - 1;
  if (progress.phase == experiments::Phase::validation)
    epochs += 1;
  else if (progress.steps > 0)
    epochs += static_cast<double>(progress.step) / static_cast<double>(progress.steps);
  return std::clamp(epochs / progress.epochs, 0.0, 1.0);
}

std::optional<double> seconds_left(double fraction, double elapsed, std::optional<double> expected) {
  if (fraction < far_enough && expected) return std::max(0.0, *expected - elapsed);
  if (fraction <= 0) return std::nullopt;
  return elapsed * (1 - fraction) / fraction;
}

RunTimes::RunTimes(const Plan& plan) {
  for (const PlannedRun& run : plan.runs) {
    if (!plan.waits(run)) continue;
    Kind& kind = kinds_[kind_of(run.run)];
    kind.known = run.expected_seconds;
    ++kind.waiting;
  }
}

void RunTimes::started(const PlannedRun& run) {
  --kinds_[kind_of(run.run)].waiting;
}

void RunTimes::waits_again(const PlannedRun& run) {
  ++kinds_[kind_of(run.run)].waiting;
}

void RunTimes::ended(const PlannedRun& run, double seconds) {
  Kind& kind = kinds_[kind_of(run.run)];
  kind.sum += seconds;
  ++kind.count;
}

std::optional<double> RunTimes::expected(const Kind& kind) const {
  if (kind.count > 0) return kind.sum / kind.count;
  return kind.known;
}

std::optional<double> RunTimes::expected(const PlannedRun& run) const {
  const auto kind = kinds_.find(kind_of(run.run));
  return kind == kinds_.end() ? std::nullopt : expected(kind->second);
}

std::optional<double> RunTimes::waiting_seconds() const {
  double sum = 0;
  for (const auto& [name, kind] : kinds_) {
    if (kind.waiting <= 0) continue;
    const auto each = expected(kind);
    if (!each) return std::nullopt;
    sum += kind.waiting * *each;
  }
  return sum;
}

}  // namespace trainyard::orchestrator
