// The verdicts as plain text: one row per cell, arm and metric, then the models by verdict (the published
// shape) and each warning.
#pragma once

#include <cstddef>
#include <string>

#include "reports/content/content.h"

namespace trainyard::reports {

// `width`: columns of the terminal; 0, for files and pipes: nothing is wrapped. Nothing is ever cut.
std::string terminal_table(const Content& content, std::size_t width = 0);

}  // namespace trainyard::reports
