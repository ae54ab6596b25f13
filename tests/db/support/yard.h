// Test data for the database: runs, journal entries, launches and records, as the orchestrator and the runner
// write them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "db/queries/queries.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/run/run.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::db::testing {

using TemporaryFolder = tests::ScratchFolder;

// A resolved run; world size `replicas`.
experiments::Run make_run(const std::string& model, std::int64_t replicas, std::uint64_t seed,
                          std::int64_t epochs = 3);

std::string key(const experiments::Run& run);

// The journal's `run` entry for `runs`, at `time`.
nlohmann::json run_entry(const std::string& experiment, const std::vector<experiments::Run>& runs,
                         const std::string& time);
// The journal's entry that removes attempt 1 of these runs.
nlohmann::json rm_entry(const std::vector<std::string>& keys, const std::string& time);

// run.json of an attempt of `run`.
experiments::Launch make_launch(const experiments::Run& run, int attempt = 1,
                                const std::string& created = "2026-11-20T09:00:00.000Z");

// Makes the records of a record log. It counts `seq` and adds one second to the time of each record.
class RecordLog {
 public:
  RecordLog(const experiments::Run& run, int attempt, std::optional<int> rank);
  experiments::Record next(const std::string& type, const nlohmann::json& body = nlohmann::json::object());
  std::int64_t seq = 0;

 private:
  std::string run_;
  int attempt_;
  std::optional<int> rank_;
};

// Bodies of records.
nlohmann::json start_body(int rank, std::int64_t world_size);
nlohmann::json metric(const std::string& phase, const std::string& name, const nlohmann::json& sum,
                      double weight);
nlohmann::json epoch_body(std::int64_t epoch, double train_seconds, double validation_seconds,
                          const std::vector<nlohmann::json>& metrics = {});
// Ingests the next records of `log`: epochs 1 … `epochs`, one second each, without metrics.
void record_epochs(Ingest& ingest, RecordLog& log, std::int64_t epochs);
nlohmann::json end_body(const std::string& status, double total_seconds, const std::string& error = "");

// Ingests a successful attempt: start, `train_seconds.size()` epochs, test and end on every rank. In epoch e,
// rank r has the train loss sum 100·(r + 1)/e over 40·(r + 1) samples, with 30·(r + 1) correct ones.
void finish(Ingest& ingest, const experiments::Run& run, const experiments::Launch& launch,
            const std::vector<double>& train_seconds);

// An empty database in a folder of its own.
struct Yard {
  TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Ingest ingest{database};

  // Plans the experiment "sweep" of `runs`.
  void plan(const std::vector<experiments::Run>& runs, const std::string& time = "2026-11-20T08:00:00.000Z");
  // A run of "sweep" with these arguments of `make_run`, planned and launched.
  experiments::Run launched(const std::string& model, std::int64_t replicas, std::uint64_t seed,
                            std::int64_t epochs = 3);
  // The final metrics of the first finished run of "sweep".
  FinalMetrics final() const { return final_metrics(database, "sweep").at(0); }
};

// All rows of a table or view, each as one line of text, sorted.
std::vector<std::string> rows_of(const Database& database, const std::string& sql);
std::vector<std::string> names_of(const Database& database, const std::string& type);  // "view", "table"

}  // namespace trainyard::db::testing
