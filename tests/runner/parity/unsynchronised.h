// Ranks that do not synchronise their gradients: what the published CNN under DDP looked like from outside.
#pragma once

#include "runner/trainer/mesh.h"

namespace trainyard::runner::testing {

// From now on `ranks` leaves the sum over replicas of all float32 tensors undone, which gradients are; losses
// and checks are summed in other types.
void stop_reducing(Connections& ranks);

}  // namespace trainyard::runner::testing
