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
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "db/database/database.h"

namespace trainyard::db {

// Problems in `extra_record` of records that no program writes by mistake of one member: they fail the run,
// even if all other records are complete.
namespace impossible {
inline constexpr const char* no_epoch = "epochs count from 1";
inline constexpr const char* negative_seconds = "a member of seconds is below 0 s";
inline constexpr const char* second_test = "the rank has recorded its test already";
inline constexpr const char* after_end = "the rank has recorded its end already";
}  // namespace impossible

// "rank 0, record epoch (seq 4): epochs count from 1". `attempt_fault` finds the record by its "(seq 4)".
std::string error_of_record(std::int64_t rank, const std::string& type, std::int64_t seq,
                            const std::string& problem);

class RecordFaults {
 public:
  explicit RecordFaults(SQLite::Database& connection);

  // Update the row of this attempt. It has no row until every rank has recorded that it finished.
  void put(const std::string& run_key, int attempt);

 private:
  struct Fault;
  struct Link;   // an attempt of the chain and the epochs that it contributes
  struct Asked;  // what the run requires
  using Found = std::optional<Fault>;

  std::optional<Asked> asked(const std::string& run_key, int attempt);
  std::vector<Link> chain(const std::string& run_key, int attempt);
  Found find(const std::string& run_key, int attempt);
  Found ruled_out(const std::string& run_key, int attempt);
  Found impossible_record(const std::string& run_key, const std::vector<Link>& links);
  bool has_events_but_no_cause(const std::string& run_key, int attempt);
  Found in_epochs(const std::string& run_key, const std::vector<Link>& links, const Asked& asked);
  Found in_times_after_training(const std::string& run_key, const Link& last);
  Found in_metrics(const std::string& run_key, const std::vector<Link>& links, const Asked& asked);
  Found of_weights(const std::string& run_key, const Link& first, std::int64_t first_epoch, const Link& link,
                   std::int64_t epoch, const std::string& phase, const std::string& name);
  Found in_metric(const std::string& run_key, const Link& link, std::int64_t epoch);
  Found in_terms(const std::string& run_key, int attempt, const Asked& asked);
  Found unreadable(const std::string& run_key, int attempt, const std::string& type);
  std::string why_left_out(const std::string& run_key, int attempt, std::int64_t rank,
                           const std::string& type);
  double wall_seconds(const std::string& run_key, int attempt);

  SQLite::Statement clear_, put_, asked_, chain_, epochs_, after_training_, metrics_, wrong_metric_, weights_,
      starts_, unreadable_, impossible_, without_cause_, ruled_out_, wall_;
};

}  // namespace trainyard::db
