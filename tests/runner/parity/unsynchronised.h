// Ranks that do not synchronise their gradients, as in the published CNN under DDP.
#pragma once

#include "runner/trainer/mesh.h"

namespace trainyard::runner::testing {

// Makes `ranks` skip the sum over replicas for float32 tensors, which are the gradients.
// Losses and checks have other types.
void stop_reducing(Connections& ranks);

}  // namespace trainyard::runner::testing
