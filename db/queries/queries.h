// All queries of the program.
// - A value that is not defined is NaN. Accuracies are fractions, epochs count from 1, times are seconds.
// - The effective attempt of a run is the latest finished one, else the latest. The epochs that it resumes
//   belong to it.
// - Rows are in order of first planning.
// - UserError if the file cannot be read.
// - Use `Database::transaction` for several queries of one snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

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
  std::string data_source;  // read: differs if a stand-in was used
  std::string strategy;     // label in the experiment
  std::string kind;         // of the strategy: "ddp"
  std::int64_t replicas = 1;
  std::int64_t stages = 1;
  std::int64_t servers = 0;
  std::int64_t tensor = 1;
  std::int64_t seed = 0;
  std::string status;       // planned | running | finished | failed | interrupted
  std::int64_t epochs = 0;  // asked for
  std::int64_t epochs_done = 0;
  std::int64_t attempts = 0;
  double total_train_seconds = 0;
  double total_seconds = 0;  // launch to end, of all its attempts; 0 if no rank has recorded it
  double test_accuracy = 0;
  std::string circumstances_hash;     // of the effective attempt
  std::string failure;                // first error line of the effective attempt, if it failed
  std::string updated;                // UTC of the last record, else of the launch, else of the plan
  bool in_latest_plan = true;         // the latest `run` entry of the experiment plans it too
  std::map<std::string, Value> axes;  // every resolved value by name; `strategy` as this experiment labels it
  // From the file, if it declares its own model or data set. Empty for those of trainyard.
  std::string model_title, task, dataset_title;
  std::vector<std::string> loss_parts;  // names of the parts of its own loss
  bool without_loss = false;  // a program of the user has recorded neither losses nor correct predictions
  std::int64_t ranks() const { return replicas * stages * tensor + servers; }
  // JSON texts about a program of the user.
  std::string files;    // declared files: names and SHA-256
  std::string command;  // arguments, and variables of its own; placeholders are replaced
};

// All runs, or those of one experiment: one row per run and experiment. `experiment` is empty if no
// experiment plans the run.
std::vector<RunSummary> run_summaries(const Database& database, const std::string& experiment = "");

// Experiments in order of their last `run` entry, the latest last.
std::vector<std::string> experiment_names(const Database& database);

// Experiments that plan a run of this one, and whose first plan is earlier than that of this one.
std::vector<std::string> earlier_experiments_with_runs_of(const Database& database,
                                                          const std::string& experiment);

// The latest `run` entry of an experiment.
struct Plan {
  std::string experiment;
  std::string toml;
  std::string time;
  std::vector<experiments::Compare> compare;
  std::vector<experiments::Expectation> expect;
  std::optional<experiments::Published> published;
  std::vector<experiments::ProfiledData> data_profiles;
  std::vector<experiments::OwnMetric> metrics;  // of its file
  std::vector<std::string> varied;
  std::vector<std::string> keys;  // planned by the latest entry
  std::string file;               // as the user named it
  nlohmann::json asked;           // what the command line added to it; null if that is nothing
};
Plan latest_plan(const Database& database, const std::string& experiment);  // UserError: no such experiment

// All `run` entries of an experiment, the latest last.
struct PlanEntry {
  std::string time;
  std::string toml;
  std::vector<experiments::Compare> compare;
  std::vector<std::string> keys;
  std::vector<std::string> strategies;  // the label of each key in this entry
};
std::vector<PlanEntry> plan_history(const Database& database, const std::string& experiment);

// Keys of finished runs whose effective attempt ran under the given circumstances (`here`), or under others
// (`elsewhere`).
struct Finished {
  std::vector<std::string> here;
  std::vector<std::string> elsewhere;
  std::map<std::string, std::string> times_problems;  // why times of runs in `here` do not count
};
Finished finished_runs(const Database& database, const std::map<std::string, std::string>& hash_by_key);

// Run keys with this prefix, in alphabetical order. "last" is the run with the newest record, else the newest
// launch. Empty if none was launched.
std::vector<std::string> keys_with_prefix(const Database& database, const std::string& prefix);

// Warnings and errors of ranks (−1: the orchestrator), by attempt, rank and order.
struct Warning {
  int attempt = 0;
  std::int64_t rank = 0;
  std::string level;  // "warning" or "error"
  std::string text;
};
std::vector<Warning> warnings_of_run(const Database& database, const std::string& run_key);

// Job numbers of the attempts of a run on a cluster, by attempt.
std::map<int, std::string> jobs_of_run(const Database& database, const std::string& run_key);

// The highest attempt number of the run, also of attempts that `rm` removed. 0 if there is none.
int last_known_attempt(const Database& database, const std::string& run_key);

// One row per run and epoch over all ranks (times: the slowest rank), or one per run, epoch and replica
// (metrics: its last stage, times: its slowest stage). While a run is not finished, an epoch has an average
// once all ranks have written it. Energy and memory have averages only.
struct EpochRow : MetricValues {
  std::string run_key;
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::int64_t replica = -1;  // −1: the average over replicas; without stages a replica is a rank
  std::int64_t epoch = 0;
  bool times_count = true;  // false if other processes disturbed it; of averages also those of the run
};
std::vector<EpochRow> epoch_averages(const Database& database, const std::string& experiment);
std::vector<EpochRow> epoch_replicas(const Database& database, const std::string& experiment);
std::vector<EpochRow> epochs_of_run(const Database& database, const std::string& run_key);  // averages

// The parts of a run's epoch time, as means over timed epochs (see db/README.md) and ranks. A part that no
// rank has measured is absent.
struct TimeParts {
  std::string run_key;
  std::map<std::string, double> seconds;  // by part: experiments/protocol/time_parts.h
};
// All finished runs of the experiment, or one of them.
std::vector<TimeParts> time_parts(const Database& database, const std::string& experiment,
                                  const std::string& run_key = "");

// What the ranks of a finished run have sent and held, over all epochs: of the replica, or of the server, with most of it.
struct RankCost {
  std::string run_key;
  bool server = false;
  std::string what;  // "sent_bytes" in a step, "held_bytes", "staleness" (updates of all servers)
  std::string name;  // "replicas", "parameters", "3"
  double amount = 0;
};
std::vector<RankCost> rank_costs(const Database& database, const std::string& experiment);

// A part of a training step of one rank (`step_event`).
struct StepEvent {
  std::string run_key;
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // of the epoch, from 1
  std::int64_t replica = 0;
  std::int64_t stage = 0;
  std::string host;
  std::string part;
  std::int64_t micro_batch = -1;  // −1: none
  double begin = 0, end = 0;      // seconds since the first event of the step on this host
};
std::vector<StepEvent> step_events(const Database& database,
                                   const std::string& experiment);  // by run and step

// The metrics of the user that runs of the experiment define in their `start` records, in order of launch.
struct StatedMetric {
  std::string run_key;
  experiments::OwnMetric metric;
};
std::vector<StatedMetric> stated_metrics(const Database& database, const std::string& experiment);

// Values of metrics of the user, one per run, epoch and phase. 0 is the epoch of the test.
struct OwnValue {
  std::string run_key;
  std::int64_t epoch = 0;
  std::string phase;
  std::string name;
  double mean = 0, sum = 0;  // over ranks
  bool timed = true;         // the epoch's times are compared (`timed_epoch`)
};
std::vector<OwnValue> own_values(const Database& database, const std::string& experiment,
                                 const std::vector<std::string>& names);

double steps_per_epoch(const Database& database, const std::string& run_key);  // NaN: not recorded

// The numbers of a finished run that enter verdicts (`task_final_metrics`).
struct FinalMetrics : MetricValues {
  std::string run_key;
  int attempt = 0;       // the effective one
  std::string launched;  // UTC
  std::string model;
  std::string strategy;
  std::int64_t seed = 0;
  std::int64_t epochs = 0;
  bool times_count = true;      // host to itself, devices not shared, all of it under the same circumstances
  std::string times_problem;    // why they do not; empty if they count
  bool fewer_replicas = false;  // an attempt had fewer ranks than the run: no cost is that of the run
  double other_share = not_defined;   // of its cores, taken in these epochs; not defined: not recorded
  double others_limit = not_defined;  // up to which the times of an epoch count
  int timed_epochs = 0;               // whose times are used
  int disturbed_epochs = 0;           // that are left out, because other processes took too much
};
std::vector<FinalMetrics> final_metrics(const Database& database, const std::string& experiment);
std::optional<FinalMetrics> final_metrics_of_run(const Database& database, const std::string& run_key);

// Runs that were trained side by side, each on its own devices (`exclusive = "devices"`), in order of launch.
// They measure the limit of the machine.
struct PackedRun {
  std::string run_key;
  std::string circumstances_hash;
  std::map<std::string, Value> axes;
  double epoch_train_seconds = 0;
  int at_once = 1;  // packed runs that were training in the middle of this one, including it
};
std::vector<PackedRun> packed_runs(const Database& database);

// The attempts of a run, oldest first.
struct Attempt {
  int attempt = 0;
  std::string status;  // running | finished | failed | interrupted
  std::string directory;
  std::string started;
  double total_seconds = 0;
  std::string cause;                 // first error line; empty without an error
  nlohmann::json launch;             // its run.json
  std::string times_problem;         // why its times, or those of the run, do not count; empty if they do
  double other_share = not_defined;  // of its cores that other processes took; not defined: not recorded
  std::int64_t measured_epochs = 0, disturbed_epochs = 0;
};
std::vector<Attempt> attempts_of_run(const Database& database, const std::string& run_key);

// The run.json of the effective attempt of each run of an experiment, by run key.
std::map<std::string, nlohmann::json> effective_launches(const Database& database,
                                                         const std::string& experiment);

// Keys of the runs with this status: running | finished | failed | interrupted.
std::set<std::string> keys_with_status(const Database& database, const std::string& status);

// Attempts (run key, attempt) that get no more records.
// - Failed or interrupted attempts.
// - Finished attempts whose ranks have all exited. Timed runs on this host must also have recorded the
//   processor use of other processes.
std::set<std::pair<std::string, int>> completed_attempts(const Database& database);

// Median seconds of finished runs, to estimate the time of a plan. Keys:
// "model strategy epochs dataset train_samples", with the run's own label as strategy, and "all" if the
// number of samples is not limited.
std::map<std::string, double> median_run_seconds(const Database& database);

// Run one read-only statement, for `trainyard sql`. A blob is returned as text, X'0FA0'. UserError if the
// statement writes (also to another database, a setting or a transaction), if there are several, or with
// SQLite's text if it is not SQL.
struct ResultTable {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::json>> rows;  // null, integer, number or text
};
ResultTable select(const Database& database, const std::string& sql);

// Whole views, for `trainyard export`, and queries of users. Only one row is in memory at a time.
struct ExportedView {
  std::string name;   // "epochs"
  std::string view;   // "epoch_average", see db/README.md
  std::string about;  // one line
  std::string order;  // columns
};
std::span<const ExportedView> exported_views();

using ExportRow = std::vector<nlohmann::json>;  // null, integer, number or text
using OnColumns = std::function<void(const std::vector<std::string>&)>;
using OnRow = std::function<bool(const ExportRow&)>;  // false: no more rows are wanted

// Call `columns` once, then `row` for each row of `experiment` until it returns false, in a fixed order.
void export_rows(const Database& database, const ExportedView& view, const std::string& experiment,
                 const OnColumns& columns, const OnRow& row);

// Run the statement of a user, with the same calls.
// UserError if the statement is wrong, writes, or makes a text of more than 64 MiB. It can use two aggregates that SQLite
// lacks: `stddev` with n - 1, exactly 0 for equal values, and `median`. Both leave NULL out and refuse other texts.
void select_rows(const Database& database, const std::string& sql, const OnColumns& columns,
                 const OnRow& row);

// One row per column of each view, then of each table: `kind` ("view" or "table"), `name`, `column` and
// `type` (empty if a view computes it). Views are in the order of db/database/views.cpp, in which they were
// created. Those with rows of a whole experiment come before the views that they are made of.
inline constexpr const char* schema_query = R"sql(
  WITH made_of(name) AS (VALUES ('attempt_summary'), ('attempt_status'), ('counted_attempt'), ('run_chain'), ('run_epoch'),
                                ('epoch_mean'), ('timed_epoch'), ('epoch_train_seconds'), ('run_in_experiment'))
  SELECT s.type AS kind, s.name, c.name AS "column", c.type
  FROM sqlite_schema s JOIN pragma_table_info(s.name) c
  WHERE s.type IN ('view', 'table') AND s.name NOT LIKE 'sqlite%'
  ORDER BY s.type = 'table', s.name IN made_of, s.rowid, c.cid)sql";

// Set the members of a journal's `run` entry beside its runs: comparisons, expectations, published numbers …
// The queries read them from the columns of `journal`. An entry that they could not read is refused by ingest,
// like any damaged line. InternalError if a member has the wrong form.
void read_plan_members(Plan& plan, const nlohmann::json& entry);

}  // namespace trainyard::db
