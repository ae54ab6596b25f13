// The impossible record that made an attempt fail after all its ranks finished (db/database/record_faults.h).
// Used by the orchestrator, which adds the place of the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/database/database.h"

namespace trainyard::db {

struct AttemptFault {
  int attempt = 0;  // of the record; it may be an attempt that the failed one resumes
  int rank = 0;
  std::string type;        // of the record
  std::int64_t epoch = 0;  // of the record; 0: the record has none
  std::string error;
  std::optional<std::int64_t> seq;  // of the record, if the error names it
};
std::optional<AttemptFault> attempt_fault(const Database& database, const std::string& run_key, int attempt);

// The same for an orchestrator that closes the attempt. Then a record after the `end` of its rank is a fault too, and the
// orchestrator must record the cause. Records that come later change nothing.
std::optional<AttemptFault> fault_at_close(const Database& database, const std::string& run_key, int attempt);

}  // namespace trainyard::db
