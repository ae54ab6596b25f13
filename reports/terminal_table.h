// The verdicts for a terminal: one line per cell, arm and metric, at most 100 columns wide, then the table in
// the published shape and a line for each warning.
#pragma once

#include <string>

#include "reports/content.h"

namespace trainyard::reports {

std::string terminal_table(const Content& content);

}  // namespace trainyard::reports
