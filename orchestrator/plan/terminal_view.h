// What the terminal shows, as values, and its drawing as text: pure functions, so that tests see every
// character. Escape sequences are colours only; moving the cursor is the business of `status_terminal.cpp`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/progress.h"

namespace trainyard::orchestrator {

struct RunBar {
  std::string label;
  experiments::Progress progress;
  double fraction = 0;  // of the whole run
  double elapsed_seconds = 0;
  std::optional<double> steps_per_second;
  std::optional<double> seconds_left;
};

struct SweepBar {
  std::size_t done = 0;  // finished, failed or interrupted
  std::size_t failed = 0;
  std::size_t total = 0;  // to run in this sweep
  double fraction = 0;    // of all, runs under way counted in part
  double elapsed_seconds = 0;
  std::optional<double> seconds_left;
};

struct TerminalView {
  std::vector<RunBar> runs;  // under way
  SweepBar sweep;
};

// `width` columns of "━━━━━╸────".
std::string bar(double fraction, std::size_t width, bool colour);

// The lines of a frame, none wider than `width` columns: parts that do not fit are left out from the right.
std::vector<std::string> draw(const TerminalView& view, std::size_t width, bool colour);

}  // namespace trainyard::orchestrator
