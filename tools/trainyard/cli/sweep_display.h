// Display of a sweep on a terminal: a line for each active run and one for the sweep, which are redrawn. Ended runs stay
// above them.
#pragma once

#include <memory>
#include <optional>

#include "experiments/protocol/progress.h"
#include "orchestrator/plan/status.h"

namespace trainyard::tools {

// The destructor erases the lines. NO_COLOR turns colours off.
std::unique_ptr<orchestrator::Status> sweep_display(int terminal);

// Completed share of a run's epochs, in [0, 1].
double fraction_done(const experiments::Progress& progress);

// Seconds left for a work that has done `fraction` in `elapsed` seconds. Empty if they cannot be estimated.
// `expected`: its usual seconds, used until a tenth is done.
std::optional<double> seconds_left(double fraction, double elapsed, std::optional<double> expected);

}  // namespace trainyard::tools
