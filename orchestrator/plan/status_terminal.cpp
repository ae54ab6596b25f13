// Live progress: a bar per run under way and one for the sweep, redrawn in place at most ten times a second;
// what has ended scrolls away above them. Each drawing is one write. The cursor is hidden meanwhile, and
// shown again however this ends.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <list>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "experiments/run/run.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/plan/status_text.h"
#include "orchestrator/plan/terminal_view.h"
#include "orchestrator/plan/time_left.h"

namespace trainyard::orchestrator {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Steps a second of one run, smoothed over its readings of the progress file.
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
    if (attempt > 1) label += " (attempt " + std::to_string(attempt) + ")";
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
    const bool finished = outcome.kind == RunOutcome::Kind::finished;
    if (finished) times_.ended(run, outcome.seconds);
    if (outcome.retry_seconds) times_.waits_again(run);
    if (outcome.kind == RunOutcome::Kind::failed && !outcome.retry_seconds) ++failed_;
    if (!outcome.retry_seconds) ++done_;
    active_.remove_if([&](const ActiveRun& active) { return active.planned == &run; });
    std::string text = mark(finished) + " " +
                       models::printable(experiments::label(run.run) + "  " + outcome_text(outcome) + "\n");
    if (!outcome.log.empty()) text += models::printable("  log: " + outcome.log + "\n");
    redraw(text);
  }

  void message(const std::string& text) override {
    const std::string line = models::printable(text) + "\n";
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

  // Asked at each drawing: a window may have been resized.
  std::size_t width() const {
    winsize size{};
    if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
  }

  // Back to the first line of the last frame, and everything from there on wiped.
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

  // What the terminal does not take is lost: this is no evidence.
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

}  // namespace trainyard::orchestrator
