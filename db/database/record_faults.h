// Impossible records of an attempt: missing or unexpected epochs, impossible metrics or times, ranks with
// different terms. Also events that fail an attempt: a limit was exceeded, a declared file has changed. If there
// is such a fault, the attempt has failed, even if all its ranks recorded that they finished (`attempt_status`).
//
// A record after the `end` of its rank is a fault in two cases: the orchestrator recorded a cause, or the orchestrator has
// no records. Otherwise the record came after the orchestrator had closed the attempt, and changes nothing.
//
// The writer keeps the first fault of each attempt in `attempt_fault`. It is derived from the other tables,
// so a replay gives the same rows. Used by `RunStates`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/database/database.h"

namespace trainyard::db {

class Prepared;

// Problems in `extra_record` of records that are impossible as a whole. One of them fails the run, even if all
// other records are complete.
namespace impossible {
inline constexpr const char* no_epoch = "epochs count from 1";
inline constexpr const char* negative_seconds = "a member of seconds is below 0 s";
inline constexpr const char* second_test = "the rank has recorded its test already";
inline constexpr const char* after_end = "the rank has recorded its end already";
}  // namespace impossible

// SQL of "rank 0, record epoch (seq 4): epochs count from 1", from a row `x` of `extra_record`. `attempt_fault`
// finds the record by its "(seq 4)".
inline constexpr const char* record_problem =
    "printf('rank %d, record %s (seq %d): %s', x.rank, "
    "IIF(length(x.type) > 40, substr(x.type, 1, 39) || '…', x.type), x.seq, x.problem)";

class RecordFaults {
 public:
  explicit RecordFaults(Prepared& prepared) : prepared_(prepared) {}

  // Update the row of this attempt. It has no row until every rank has recorded that it finished.
  void put(const std::string& run_key, int attempt);

 private:
  // Put the fault that the rules find, if there is one.
  bool put_first(const std::string& run_key, int attempt);
  void put_other_terms(const std::string& run_key, int attempt);

  Prepared& prepared_;
};

// The impossible record that made an attempt fail after all its ranks finished. Used by the orchestrator, which adds the
// place of the record.
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
