// What a run can go on from, as its records say.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "experiments/protocol/launch.h"

namespace trainyard::db {

struct ResumableAttempt {
  int attempt = 0;
  std::int64_t whole_epochs = 0;  // all ranks have recorded epochs 1 … n, here or in what it resumes
  std::vector<std::int64_t> checkpoints;  // epochs of which rank 0 recorded one
  experiments::Circumstances circumstances;
};

// The attempts of a run after its last finished one, oldest first. What ended with impossible records is not
// gone on from, nor what it had gone on from itself: nobody knows which of them is at fault.
std::vector<ResumableAttempt> resumable_attempts(const Database& database, const std::string& run_key);

// Runs whose last attempt has finished.
std::set<std::string> runs_with_nothing_to_resume(const Database& database);

}  // namespace trainyard::db
