// Collector of the records of one attempt.
//
// - Passes whole records to the database, in one transaction per poll. A poll reads a limited number of bytes.
// - The files are synced first, so that after a power cut the database has no record that the files lack.
// - Keeps what supervision needs: which ranks have finished or failed, why, and the results of the test.
// - Reports damaged lines and records of other runs, and leaves them out.
// - Stops reading a record log that exceeds a limit (experiments/protocol/record_lines.h).
// - Used by `Attempt` while its ranks run, and by `recovery` if the orchestrator has died.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "experiments/protocol/end_reason.h"
#include "experiments/protocol/record.h"
#include "orchestrator/yard/record_log_tail.h"

namespace trainyard::orchestrator {

// Folder and identity of an attempt.
struct AttemptPlace {
  std::filesystem::path directory;
  std::string key;
  int attempt = 1;
  int world_size = 1;
  bool shared = false;  // on a network file system, where files appear late
};

// A record log that exceeds a limit: its line `line` and all after it are not read.
struct OverLimit {
  std::optional<int> rank;  // its writer; empty: the orchestrator
  std::int64_t line = 0;
  std::string why;  // one line with the name of the file
};
// The record that says so, of type `over_limit`. A replay stops at the same line.
nlohmann::ordered_json to_json(const OverLimit& over);

class Collector {
 public:
  // `run_file`: the attempt's run.json, ingested with the first records.
  Collector(AttemptPlace place, nlohmann::json run_file, db::Ingest& ingest);

  // Ingests new records in one transaction. Does nothing if there are none.
  void collect();
  void collect_all();                        // until the end of all files
  bool drained() const { return drained_; }  // the last `collect` reached the end of all files

  // The limits that were exceeded, in the order of detection. If there is one, the attempt has failed.
  const std::vector<OverLimit>& over_limits() const { return over_limits_; }

  bool refused() const { return refused_; }  // the run was removed by `rm` after this attempt

  bool finished(int rank) const;  // its `end` record says so
  bool finished() const;          // every rank has finished
  bool has_cause() const { return has_cause_; }
  std::int64_t epochs() const;  // the last one that all ranks have recorded; 0 if there is none
  // Its `end` record. Null if there is none.
  struct End {
    bool finished = false;
    std::string error;
    std::optional<experiments::EndReason> reason;
  };
  const End* end(int rank) const;
  // The first of its records that was left out, and why.
  std::optional<std::string> left_out(int rank) const;
  // Whether its `end` record says so, but was left out.
  bool said_finished(int rank) const { return unheard_ends_.contains(rank); }
  std::optional<double> test_mean(const std::string& metric) const;  // of the test set

  // New messages since the last call: warnings and errors of ranks, and lines that were left out.
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

 private:
  struct WeightedSum {
    double sum = 0;
    double weight = 0;
  };
  struct Spool {
    RecordLogTail tail;
    std::optional<int> rank;
    int left_out = 0;   // lines
    bool over = false;  // it exceeds a limit
  };

  std::vector<experiments::Record> new_records();
  void take_lines(Spool& spool, std::vector<experiments::Record>& records);
  void exceed(Spool& spool, std::int64_t line, const std::string& why);
  std::string problem_with(const experiments::Record& record, const Spool& spool) const;
  void leave_out(std::optional<int> rank, const std::string& what);
  void note(const experiments::Record& record, db::Accepted accepted);
  void note_end(const experiments::Record& record);
  void note_epoch(const experiments::Record& record);
  void note_test(const experiments::Record& record);
  void note_message(const experiments::Record& record);

  AttemptPlace place_;
  nlohmann::json run_file_;  // null once it is ingested
  bool refused_ = false;
  bool drained_ = false;
  std::vector<OverLimit> over_limits_;
  db::Ingest& ingest_;
  std::vector<Spool> spools_;
  std::map<int, End> ends_;
  std::map<int, std::int64_t> epochs_;  // by rank
  std::map<std::string, WeightedSum> test_;
  bool has_cause_ = false;
  std::set<std::optional<int>> incomplete_;  // writers with records that were left out
  std::map<std::optional<int>, std::string> left_out_;
  std::set<std::optional<int>> conflicts_;  // writers with other records than the database
  std::set<int> unheard_ends_;              // ranks with an `end` after a missing record
  std::vector<std::string> messages_;
};

// A text member of a record's body. Empty if it is missing or not text, because foreign programs write
// records too.
std::string text_member(const nlohmann::json& object, const char* member);

// Last line of a log that looks like an error, trimmed. Empty if there is none. Reads the last 64 KiB.
std::optional<std::string> last_error_line(const std::filesystem::path& log);

// Last readable line of a log, trimmed. If it is a progress bar, its last state.
std::optional<std::string> last_line(const std::filesystem::path& log);

}  // namespace trainyard::orchestrator
