// Rows of records. The records of an attempt and rank (−1: the orchestrator) are read strictly in the order
// of `seq`. `record_log.next_seq` is the next one. Records that come too early are skipped.
#pragma once

#include <cstdint>
#include <optional>

#include "db/database/database.h"
#include "db/database/run_states.h"
#include "db/ingest/ingest.h"
#include "db/ingest/members.h"
#include "db/ingest/prepared.h"
#include "experiments/protocol/record.h"

namespace trainyard::db {

class RecordRows {
 public:
  RecordRows(Prepared& prepared, RunStates& states) : states_(states), prepared_(prepared) {}

  // Add the record, and mark the derived rows of its run and epoch in `states` as out of date.
  Accepted take(const experiments::Record& record);
  // The number of the next record of a rank, or of the orchestrator.
  std::int64_t next_seq(const std::string& run_key, int attempt, std::optional<int> rank);

 private:
  struct Kind;  // one row of the table of record types
  static const Kind* find_kind(const std::string& type);

  std::optional<std::int64_t> world_size(const experiments::Record& record);
  struct LogState {
    std::int64_t next_seq = 0;
    bool ended = false;  // the rank has recorded its end
  };
  LogState state_of(const std::string& run_key, int attempt, std::optional<int> rank);
  // Run a statement whose first parameters are the run, attempt and rank of the record.
  template <typename... Values>
  void write(const char* sql, const experiments::Record& record, const Values&... values);
  bool is_other(const experiments::Record& record);  // than the one with its number in the database
  void store(const experiments::Record& record);

  void start(const experiments::Record& record, Members& members);
  void epoch(const experiments::Record& record, Members& members);
  void test(const experiments::Record& record, Members& members);
  void message(const experiments::Record& record, Members& members);
  void probe(const experiments::Record& record, Members& members);
  void step(const experiments::Record& record, Members& members);
  void end(const experiments::Record& record, Members& members);
  void event(const experiments::Record& record, Members& members);
  void metrics(const experiments::Record& record, std::int64_t epoch, Members& members);
  void extra(const experiments::Record& record, const std::optional<std::string>& problem);

  RunStates& states_;
  Prepared& prepared_;
};

}  // namespace trainyard::db
