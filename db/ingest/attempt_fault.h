// Why an attempt whose ranks all say that they have finished counts as failed: db/database/record_faults.h.
// Used by the orchestrator, which knows where the record's line is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/database/database.h"

namespace trainyard::db {

struct AttemptFault {
  int attempt = 0;  // of the record: one that the attempt resumes may be at fault
  int rank = 0;
  std::string type;        // of the record
  std::int64_t epoch = 0;  // of the record; 0: it has none
  std::string error;
};
std::optional<AttemptFault> attempt_fault(const Database& database, const std::string& run_key, int attempt);

}  // namespace trainyard::db
