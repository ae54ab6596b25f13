#include "orchestrator/plan/terminal_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/printable.h"
#include "orchestrator/plan/status_text.h"

namespace trainyard::orchestrator {

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
  if (now.size() < total.size()) now.insert(0, total.size() - now.size(), ' ');  // the line must not jump
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

// What stands right of a run's bar, the most important first.
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
  if (sweep.failed > 0) result.push_back(std::to_string(sweep.failed) + " failed");
  result.push_back("elapsed " + clock_text(sweep.elapsed_seconds));
  if (sweep.seconds_left) result.push_back("left " + clock_text(*sweep.seconds_left));
  return result;
}

// "label  ━━━━━╸────  part  part": a bar as wide as the parts leave room for.
std::string line(const std::string& label, double fraction, const std::vector<std::string>& right,
                 std::size_t width, bool colour) {
  std::size_t wanted = models::columns(label);
  for (const auto& part : right) wanted += 2 + models::columns(part);
  const std::size_t room = width > wanted + 2 ? width - wanted - 2 : 0;
  const std::size_t bar_width = std::clamp(room, narrowest_bar, widest_bar);
  if (models::columns(label) + 2 + bar_width > width) return models::shortened(label, width);
  std::string text = label + gap + bar(fraction, bar_width, colour);
  std::size_t used = models::columns(label) + 2 + bar_width;
  for (const auto& part : right) {
    used += 2 + models::columns(part);
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
  const std::string total =
      std::to_string(view.sweep.done) + "/" + std::to_string(view.sweep.total) + " runs";
  std::size_t label_width = models::columns(total);
  for (const RunBar& run : view.runs) label_width = std::max(label_width, models::columns(run.label));
  std::vector<std::string> lines;
  lines.reserve(view.runs.size() + 1);
  for (const RunBar& run : view.runs)
    lines.push_back(line(models::padded(run.label, label_width), run.fraction, parts(run), width, colour));
  lines.push_back(
      line(models::padded(total, label_width), view.sweep.fraction, parts(view.sweep), width, colour));
  return lines;
}

}  // namespace trainyard::orchestrator
