// Replicas that start from different parameters train different models without anyone noticing: so they are
// compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Returns where all ranks hold the same bits as rank 0; throws InternalError on every rank otherwise, naming
// the first layer that differs and how many ranks have it different.
void check_equal_parameters(const std::vector<networks::NamedParameter>& parameters,
                            Communicator& communicator);

// Hash of each parameter's values by name, 15 hexadecimal digits: recorded before the first step, so that
// arms which did not start alike are found.
std::map<std::string, std::string> parameter_hashes(const std::vector<networks::NamedParameter>& parameters);

}  // namespace trainyard::runner
