// Which runs of a sweep the parity gate holds against the virtual mesh (runner/parity/parity_gate.h): of each
// arm and cell the first seed that is run, unless another seed of it was probed here before.
#pragma once

#include "db/database/database.h"
#include "orchestrator/plan/plan.h"

namespace trainyard::orchestrator {

// Sets `probe` of the runs that wait. A program of the user's cannot be probed; independent runs are
// single ones.
void choose_probes(Plan& plan, const db::Database& database);

}  // namespace trainyard::orchestrator
