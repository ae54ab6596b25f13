// Runs that a command line names: keys, `last`, experiments, and conditions on their values.
#pragma once

#include <string>
#include <vector>

#include "db/queries/queries.h"

namespace trainyard::tools {

// Keys of the runs, each once. A name stands for a key, the beginning of one, "last", or an experiment with
// all of its runs. `where` ("model=mlp,strategy=ddp") keeps the runs of which every name has one of its
// values; without a name it chooses among the runs of the experiment that was run last. UserError: a name
// that the yard does not have, a name of both kinds, or no run that is as `where` says.
std::vector<std::string> chosen_runs(const db::Database& database, const std::vector<std::string>& names,
                                     const std::vector<std::string>& where);

}  // namespace trainyard::tools
