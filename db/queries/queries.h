// Every question that the program asks the database, each with a name. Plain result rows; NaN where a value
// is not defined. Accuracies are fractions, epochs count from 1, times are seconds. The attempt that counts
// for a run is the latest finished one, else the latest; what it resumes belongs to it. Rows come in order of
// first planning. All throw UserError where the file cannot be read; ask several of one moment within
// `Database::transaction`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/parameter.h"
#include "db/database/database.h"
#include "db/queries/metric_values.h"
#include "experiments/design/experiment.h"
#include "experiments/design/reference_results.h"

namespace trainyard::db {

struct RunSummary {
  std::string run_key;
  std::string experiment;
  std::string model;
  std::string dataset;      // asked for
  std::string data_source;  // read: differs where a stand-in was used
  std::string strategy;     // label in the experiment
  std::string kind;         // of the strategy: "ddp"
  std::int64_t replicas = 1;
  std::int64_t stages = 1;
  std::int64_t seed = 0;
  std::string status;       // planned | running | finished | failed | interrupted
  std::int64_t epochs = 0;  // asked for
  std::int64_t epochs_done = 0;
  std::int64_t attempts = 0;
  double total_train_seconds = 0;
  double total_seconds = 0;  // launch to end, of all attempts that make it up; 0 where no rank has said
  double test_accuracy = 0;
  std::string circumstances_hash;     // of the finished attempt, else of the last one
  std::string failure;                // first error line of the last attempt, where it failed
  std::string updated;                // UTC of the last record, else of the launch, else of the plan
  bool in_latest_plan = true;         // the latest `run` entry of the experiment plans it too
  std::map<std::string, Value> axes;  // every resolved value by name; `strategy` as this experiment labels it
  // As the file declares a model and a data set of the user's own; empty for those of trainyard.
  std::string model_title, task, dataset_title;
};

// All runs (one row for each experiment a run is in; `experiment` is empty for a run that no experiment
// plans), or those of one experiment.
std::vector<RunSummary> run_summaries(const Database& database, const std::string& experiment = "");

// Experiments in order of their last `run` entry, the latest last.
std::vector<std::string> experiment_names(const Database& database);

// The latest `run` entry of an experiment.
struct Plan {
  std::string experiment;
  std::string toml;
  std::string time;
  std::vector<experiments::Compare> compare;
  std::vector<experiments::Expectation> expect;
  std::optional<experiments::Published> published;
  std::vector<experiments::ProfiledData> data_profiles;
  std::vector<std::string> varied;
  std::vector<std::string> keys;  // planned by the latest entry, without those removed since
  std::string file;               // as it was named
  nlohmann::json asked;           // what the command line added to it; null in entries of before
};
Plan latest_plan(const Database& database, const std::string& experiment);  // UserError: no such experiment

// Every `run` entry of an experiment, the latest last, with the runs that are still there.
struct PlanEntry {
  std::string time;
  std::string toml;
  std::vector<experiments::Compare> compare;
  std::vector<std::string> keys;
};
std::vector<PlanEntry> plan_history(const Database& database, const std::string& experiment);

// Keys finished under these circumstances, and keys finished under any.
struct Finished {
  std::vector<std::string> here;
  std::vector<std::string> elsewhere;
  std::map<std::string, std::string> times_problems;  // of those here whose times do not count: why
};
Finished finished_runs(const Database& database, const std::map<std::string, std::string>& hash_by_key);

// Run keys with this prefix, in alphabetical order; "last" is the run with the newest record (else launch),
// nothing where none was launched.
std::vector<std::string> keys_with_prefix(const Database& database, const std::string& prefix);

// What ranks (−1: the orchestrator) warned of, by attempt, rank and order; errors too.
struct Warning {
  int attempt = 0;
  std::int64_t rank = 0;
  std::string level;  // "warning" or "error"
  std::string text;
};
std::vector<Warning> warnings_of_run(const Database& database, const std::string& run_key);

// Numbers of the jobs that a cluster's queue gave the attempts of a run, by attempt.
std::map<int, std::string> jobs_of_run(const Database& database, const std::string& run_key);

// The highest number that an attempt of the run ever had here, also of those that `rm` removed; 0: none.
int last_known_attempt(const Database& database, const std::string& run_key);

// One row per run and epoch, summed over replicas (times: the slowest rank), and one per replica: metrics of
// its last stage, times of its slowest. While a run is not finished, its epoch has an average once all ranks
// have written theirs. `epochs_of_run` gives averages.
// Energy and memory have averages only.
struct EpochRow : MetricValues {
  std::string run_key;
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::int64_t replica = -1;  // −1: the average over replicas; without stages a replica is a rank
  std::int64_t epoch = 0;
};
std::vector<EpochRow> epoch_averages(const Database& database, const std::string& experiment);
std::vector<EpochRow> epoch_replicas(const Database& database, const std::string& experiment);
// Where the time of an epoch went: seconds by part, mean over epochs after the first (of fewer than 3 none is
// dropped) and over ranks, per run. A part that no rank has measured is absent.
struct TimeParts {
  std::string run_key;
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::map<std::string, double> seconds;  // by part: experiments/protocol/time_parts.h
};
std::vector<EpochRow> epochs_of_run(const Database& database, const std::string& run_key);

// What enters the verdicts of one finished run (`task_final_metrics`).
struct FinalMetrics : MetricValues {
  std::string run_key;
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::int64_t epochs = 0;
  bool times_count = true;    // host to itself, devices not shared, all of it under the same circumstances
  std::string times_problem;  // why they do not; empty if they count
  double other_share = not_defined;  // of its cores, that other processes took; not defined: not recorded
};
std::vector<FinalMetrics> final_metrics(const Database& database, const std::string& experiment);
std::optional<FinalMetrics> final_metrics_of_run(const Database& database, const std::string& run_key);

std::vector<TimeParts> time_parts(const Database& database, const std::string& experiment);

// Runs that were trained side by side, each on devices of its own (`exclusive = "devices"`): what the machine
// can do at most. In order of their launch.
struct PackedRun {
  std::string run_key;
  std::string circumstances_hash;
  std::map<std::string, Value> axes;
  double epoch_train_seconds = 0;
  int at_once = 1;  // packed runs under way in the middle of this one, itself among them
};
std::vector<PackedRun> packed_runs(const Database& database);

// The attempts of a run, oldest first.
struct Attempt {
  int attempt = 0;
  std::string status;  // running | finished | failed | interrupted
  std::string directory;
  std::string started;
  double total_seconds = 0;
  std::string cause;                 // first error line, empty where it went well
  nlohmann::json launch;             // its run.json
  std::string times_problem;         // why its times do not count; empty if they do
  double other_share = not_defined;  // of its cores, that other processes took; not defined: not recorded
};
std::vector<Attempt> attempts_of_run(const Database& database, const std::string& run_key);

// Keys of runs by how they stand: running | finished | failed | interrupted.
std::set<std::string> keys_with_status(const Database& database, const std::string& status);

// The attempts of which nothing more will come: failed or interrupted, or finished, all ranks seen to exit,
// and for timed runs on this host what other processes took written down. (run key, attempt)
std::set<std::pair<std::string, int>> completed_attempts(const Database& database);

// Median seconds of one run's finished attempts, by "model strategy epochs dataset train_samples" ("all"
// without a cap), where strategy is the run's own label: for the time a plan will take.
std::map<std::string, double> median_run_seconds(const Database& database);

// One statement that only reads, for `trainyard sql`. UserError for one that would write (also another
// database, a setting, a transaction), for several, and for what is no SQL, with SQLite's text. A blob comes
// as text, X'0FA0'.
struct ResultTable {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::json>> rows;  // null, integer, number or text
};
ResultTable select(const Database& database, const std::string& sql);

// What `select` can ask: a row for each column of each view and, after those, of each table. `kind` ("view"
// or "table"), `name`, `column`, `type` (empty for what a view computes). The views of db/README.md come
// first.
ResultTable schema_columns(const Database& database);

// What a journal's `run` entry says of an experiment beside its runs: comparisons, expectations, published
// numbers … The queries read it from the columns of `journal`, for reports and `resume`; an entry of which
// they could not is refused when it comes in, as any other damaged line of the journal is.

// Puts the member `name` of an entry where it belongs in `plan`; null is none. InternalError where it is not
// what a member of that name holds.
void read_plan_member(Plan& plan, std::string_view name, const nlohmann::json& value);

std::vector<experiments::Compare> comparisons_from_json(const nlohmann::json& value);

// InternalError where one of an entry's members is none.
void require_readable_plan(const nlohmann::json& entry);

}  // namespace trainyard::db
