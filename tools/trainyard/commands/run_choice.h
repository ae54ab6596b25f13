// Selection of runs on a command line: keys, `last`, experiments, and conditions on values.
#pragma once

#include <string>
#include <vector>

#include "db/queries/queries.h"

namespace trainyard::tools {

// Keys of the selected runs, without duplicates.
// - names: keys, unique prefixes of keys, "last", or experiments with all of their runs. If empty, the
//   experiment that was run last.
// - where: "model=mlp,strategy=ddp" keeps the runs with these values. Values of one name are alternatives.
// - UserError if a name is unknown or ambiguous, or if no run matches.
std::vector<std::string> chosen_runs(const db::Database& database, const std::vector<std::string>& names,
                                     const std::vector<std::string>& where);

}  // namespace trainyard::tools
