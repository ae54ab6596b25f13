// One verdict at each of its looks, before its family decides: differences, estimate, test. Used by
// `verdict`.
#pragma once

#include <vector>

#include "reports/verdicts/look_plan.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

// Words so far: INTERIM, what a divergence decides, else INCONCLUSIVE, with the reason where it is not
// tested.
std::vector<Verdict> at_looks(const Cell& cell, const Arm& arm, const Metric& metric, const LookPlan& plan);

}  // namespace trainyard::reports
