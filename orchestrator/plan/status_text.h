// Words and numbers that both kinds of status print.
#pragma once

#include <string>

#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/status.h"

namespace trainyard::orchestrator {

std::string clock_text(double seconds);     // "0:03", "12:34", "1:02:03"
std::string duration_text(double seconds);  // "4.2 s", "3 min 20 s", "2 h 5 min"
std::string percent_text(double fraction);  // "87.1 %"

// "20 runs: 3 finished before, 2 left for another time, 15 to run, about 2 min".
std::string plan_text(const Plan& plan);

// What follows a run's label: "finished in 4.2 s, test accuracy 93.1 %", "failed after 2.1 s: …".
std::string outcome_text(const RunOutcome& outcome);

}  // namespace trainyard::orchestrator
