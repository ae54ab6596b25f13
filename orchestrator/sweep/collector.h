// Follows the spools of one attempt: hands whole records to the database, in one transaction a poll, and
// keeps what supervision must know of them: who has finished, who has failed and why, what the test gave.
//
// Damaged lines, and records of another run, are counted, told and left out. Used by `Attempt` while its
// ranks run and by `recovery` for attempts whose orchestrator has died.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "experiments/protocol/end_reason.h"
#include "experiments/protocol/record.h"
#include "orchestrator/yard/record_log_tail.h"

namespace trainyard::orchestrator {

// Where an attempt lies and who it is.
struct AttemptPlace {
  std::filesystem::path directory;
  std::string key;
  int attempt = 1;
  int world_size = 1;
  bool shared = false;  // on a file system of several hosts: files show up late
};

class Collector {
 public:
  // `run_file`: the attempt's run.json, ingested with the first records.
  Collector(AttemptPlace place, nlohmann::json run_file, db::Ingest& ingest);

  // Reads what is new in all spools, in one transaction; none where nothing is.
  void collect();

  bool refused() const { return refused_; }  // the run was removed by `rm` after this attempt

  bool finished(int rank) const;  // its `end` record says so
  bool finished() const;          // every rank's does
  bool has_cause() const { return has_cause_; }
  std::optional<std::string> error(int rank) const;              // of its `end` record
  std::optional<experiments::EndReason> reason(int rank) const;  // of its `end` record
  std::optional<std::string> left_out(
      int rank) const;  // the first of its records that did not count, and why
  bool said_finished(int rank) const {
    return unheard_ends_.contains(rank);
  }  // by an `end` that did not count
  std::optional<double> test_accuracy() const;
  std::optional<double> test_loss() const;

  // Warnings and errors that ranks wrote, and lines that were left out, since the last call.
  std::vector<std::string> take_messages();

 private:
  struct WeightedSum {
    double sum = 0;
    double weight = 0;
  };
  struct Spool {
    RecordLogTail tail;
    std::optional<int> rank;
  };
  struct End {
    bool finished = false;
    std::string error;
    std::optional<experiments::EndReason> reason;
  };

  std::vector<experiments::Record> new_records();
  std::string problem_with(const experiments::Record& record, const Spool& spool) const;
  void leave_out(std::optional<int> rank, const std::string& what);
  void note(const experiments::Record& record, db::Accepted accepted);
  void note_end(const experiments::Record& record);
  void note_test(const experiments::Record& record);
  void note_message(const experiments::Record& record);
  std::optional<double> test_mean(const std::string& name) const;

  AttemptPlace place_;
  nlohmann::json run_file_;  // null once it is ingested
  bool refused_ = false;
  db::Ingest& ingest_;
  std::vector<Spool> spools_;
  std::map<int, End> ends_;
  std::map<std::string, WeightedSum> test_;
  bool has_cause_ = false;
  std::set<std::optional<int>> incomplete_;  // spools of which records were left out
  std::map<std::optional<int>, std::string> left_out_;
  std::set<int> unheard_ends_;  // ranks that wrote an `end` behind a record that is missing
  std::vector<std::string> messages_;
};

// A member of a record's body as text; empty where it is missing or no text: foreign programs write records
// too.
std::string text_member(const nlohmann::json& object, const char* member);

// The last line of a log that looks like an error, trimmed; nothing where none does. Reads the last 64 KiB.
std::optional<std::string> last_error_line(const std::filesystem::path& log);

// The last line of a log with anything to read in it, trimmed; of a progress bar what it was overwritten
// with.
std::optional<std::string> last_line(const std::filesystem::path& log);

}  // namespace trainyard::orchestrator
