// What publications found that the experiment file names, beside our own verdicts.
#pragma once

#include <string>
#include <vector>

#include "reports/document/report.h"

namespace trainyard::reports {

// One text per publication: its verdicts, how many of ours agree, which ones differ, and its hardware.
// - Only comparisons of strategies are used.
// - A published verdict without an arm is on each arm of the model that the publication has numbers of, except
//   our baseline. Without such numbers it is on all of our arms.
std::vector<std::string> published_answers(const Report& report);

}  // namespace trainyard::reports
