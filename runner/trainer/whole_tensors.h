// Whole tensors from those of the parts of split layers.
#pragma once

#include <vector>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Each tensor as it is without a split, without a gradient. Those that are not cut are not copied. Collective over `parts`.
std::vector<networks::NamedParameter> whole_tensors(std::vector<networks::NamedParameter> own,
                                                    Communicator& parts);

// Those that every part has. They are equal on all parts.
std::vector<networks::NamedParameter> uncut(std::vector<networks::NamedParameter> tensors);

}  // namespace trainyard::runner
