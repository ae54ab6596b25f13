// What a killed orchestrator left behind: attempts that are neither finished nor failed, records that were
// written but not ingested, processes that outlived it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// For each attempt of the yard that the database does not know or holds to be running: ingests its files,
// ends what is alive of it (see `leftovers.h`), and, where its ranks did not all finish, marks it
// interrupted. Removes checkpoints of runs that have finished. The yard must be locked. `tell` hears one line
// for each. StorageError where the database cannot take it.
//
// An attempt that is `alive` all the same (see adoption.h) is left alone, and returned.
struct LiveAttempt {
  std::string key;
  int attempt = 0;
};
std::vector<LiveAttempt> recover(const Yard& yard, db::Database& database,
                                 const std::function<void(const std::string&)>& tell,
                                 const std::function<bool(const std::filesystem::path&)>& alive = {});

}  // namespace trainyard::orchestrator
