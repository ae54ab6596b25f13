// The report as one plain value: what analysis found, and all that publishing reads. Analysis (reports/analysis)
// makes it from the database. Publishing turns it into a page, files and tables, and reads nothing else.
// `report.json` is this value as text (reports/document/report_json.h).
//
// - Numbers are final: means, intervals, p-values after correction. Publishing rounds them and changes units,
//   but makes no statistics.
// - A number that is not defined is NaN. Fractions, seconds, joules and bytes as in the database, unless a
//   member says otherwise.
// - Metrics have the names of `metrics()` (reports/document/metrics.h): "validation-accuracy".
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/parameter.h"
#include "experiments/design/experiment.h"
#include "experiments/design/reference_results.h"
#include "reports/document/metrics.h"
#include "reports/document/verdict.h"

namespace trainyard::reports {

// A mean over n seeds with its 95 % t interval. low and high are NaN if n < 2.
struct Point {
  double x = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
  int n = 0;
};

// What both arms of a comparison must share (experiments/design/contract.h), as the records show it.
struct Comparability {
  std::vector<std::string> refused;  // undeclared differences, each term once: "global batch 256 against 128"
  std::vector<std::string> times_refused;  // undeclared differences that concern only times
  std::vector<std::string> declared;       // differences declared by `differs` or implied by the mesh
  std::vector<std::string> not_stated;     // terms that a foreign arm or baseline does not state
  std::vector<Caveat> caveats;             // for metrics other than times and energy
  std::string broken;                      // failure of the parity check, with the first layer; else empty
  bool verified() const { return not_stated.empty(); }
};

// The finished runs of an arm in one metric, in the unit of the database.
// - Values that are not finite are left out, and so are times and energy that do not count.
// - n, mean and sd equal, bit for bit, `groupby(…).agg(["count", "mean", "std"])` of pandas 2.3 over the same
//   runs in the order of `trainyard export final`.
struct Sample {
  std::string metric;
  int n = 0;
  double mean = NAN;
  double sd = NAN;
  Interval interval{NAN, NAN};  // 95 % t interval of the mean
  // The best mean of the arms that may be compared and have values for the same pairs as the baseline. It says
  // nothing about significance.
  bool best = false;
};

// Means of one metric over the runs of an arm. Accuracies are in percent, as on the page.
struct Curve {
  std::string metric;
  std::int64_t replica = -1;     // −1: all replicas together; without stages a replica is a rank
  std::vector<Point> points;     // x: epochs, in order
  std::optional<Point> final;    // the value of a run, see docs/verdicts-and-statistics.md
  std::vector<Point> by_second;  // x: mean elapsed seconds; of the validation loss of all replicas only
  // Mean change against the baseline over pairs at each epoch, on the scale of the verdict; of other arms, and
  // of all replicas only.
  std::vector<Point> differences;
};

struct ArmRun {
  std::string pair;  // text of the pairing values: "3", "seed=3 fold=1"; unpaired: the key
  std::string key;
};

// A part of a step of a rank (experiments/protocol/time_parts.h, and "transfer": messages between stages).
struct TimelineEvent {
  std::int64_t replica = 0;
  std::int64_t stage = 0;
  std::string part;
  std::int64_t micro_batch = -1;  // −1: none
  double begin = 0;               // seconds since the first event of any rank
  double end = 0;
};

// What each rank of a run did when, in one training step.
struct StepTimeline {
  std::string run;  // its key
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // of the epoch, from 1
  std::vector<TimelineEvent> events;
};

// Why the arm has another result or other times than the baseline, from what the recorder observed (docs/explain.md).
struct Cause {
  std::string name;       // "batch"
  bool of_times = false;  // else of the result
  std::string evidence;   // "128 samples per step, single has 64"
  std::string advice;     // what to change
};

// By how much a part of an epoch is longer than in the baseline, as a share of the baseline's epoch.
struct PartChange {
  std::string part;  // experiments/protocol/time_parts.h
  double change = 0;
  std::optional<Interval> ci95;  // of the mean over pairs; empty if n < 2
  int n = 0;                     // pairs
};

// What a rank sends and holds: of the replica, or of the server, with most of it. Means over runs.
struct RankCosts {
  bool server = false;
  std::map<std::string, double> sent_bytes;  // in a training step, by the group that it sends to
  std::map<std::string, double>
      held_bytes;  // the most in the first step: "parameters", "gradients", "state", "messages"
  std::map<std::string, double> staleness;  // of servers: share of the updates, by staleness
};

struct Arm {
  std::string value;         // of the compared axis: "ddp"
  std::vector<ArmRun> runs;  // as planned
  std::int64_t replicas = 1;
  std::int64_t stages = 1;
  std::optional<std::int64_t> servers = {};  // of a kind that has them
  std::optional<std::int64_t> tensor = {};   // parts of split layers, of a kind that has them
  std::int64_t devices = 1;       // distinct ones of a run; if they are not known, as many as ranks
  Comparability comparability;    // with the baseline; nothing for the baseline itself
  std::vector<Sample> samples;    // by metric; without metrics that no run of the cell has or should have
  std::vector<Curve> curves;      // by metric and replica
  std::optional<Point> speed_up;  // baseline time / its time, geometric mean over pairs; x: devices
  std::map<std::string, double>
      time_parts;  // mean seconds of an epoch by part (experiments/protocol/time_parts.h)
  // The first finished run with one, if possible one whose times count. Empty: its runs have no stages, or were on GPUs
  // or several hosts.
  std::optional<StepTimeline> timeline = {};
  // Those of the result first, and the largest part first. Empty: not looked for, as for the baseline itself.
  std::optional<std::vector<Cause>> causes = {};
  std::optional<std::vector<PartChange>> part_changes = {};
  std::optional<std::vector<RankCosts>> rank_costs = {};  // replicas first; empty: nothing is recorded
  std::int64_t ranks() const { return replicas * stages * tensor.value_or(1) + servers.value_or(0); }
};

// Total speed-up of N independent runs at once: N · t₁ / t_N. No strategy can be faster on this machine: the
// runs share memory, caches and power, but never wait for each other.
struct MachineLimit {
  int runs = 0;  // at once
  double speed_up = 0;
  double low = NAN, high = NAN;  // 95 % t interval; NaN for a single pair
  int pairs = 0;                 // 0: unpaired, from runs of a packed sweep
};

// One model with one combination of all varied values except the compared axis and the pairing.
struct CellName {
  std::string model;                                         // empty if models are compared
  std::vector<std::pair<std::string, std::string>> further;  // other varied values, by name
  std::string label;  // "MLP", "MLP, batch 64": the model and the values that differ between cells
  std::string slug;   // unique in the report if not `repeated`; safe as a file name and an anchor
};

struct Cell : CellName {
  std::string dataset;    // "mnist", "mnist, stand-in synthetic-digits"
  bool repeated = false;  // an earlier comparison of the report has all of its runs
  Arm baseline;
  std::vector<Arm> arms;
  std::vector<Arm> limits;  // if strategies are compared: independent runs at once, without verdicts
  std::vector<MachineLimit> machine_limits;  // by number of runs
  std::vector<std::string> not_defined;      // metrics that no run can have, because of its task
  std::vector<Verdict> verdicts;  // by arm, then metric, without metrics that are not defined for the arm

  std::vector<const Arm*> compared() const;  // the baseline, then the arms
  const Verdict* find(const std::string& arm, const std::string& metric) const;  // null: not defined
  const Verdict* find_with_margin(const std::string& metric) const;              // the first one of any arm
  const Arm* find_arm(const std::string& value) const;                           // null: there is none
};

// "BROKEN" or "NOT COMPARABLE"; empty if its values may be compared with those of the baseline.
std::string refusal_of(const Arm& arm);

// "NOT VERIFIED: the records do not state …"; empty if the arm is verified.
std::string not_verified(const Arm& arm);

// All verdicts of one `[[compare]]`.
struct Comparison {
  experiments::Compare compare;
  std::vector<Cell> cells;
  std::string experiment;  // its name in a report of several; empty in a report of one
  // End of its file names and anchors, unique in the report: "" for the first, "-batch-32" for another one of
  // the same experiment, "-first-strategy-single" in a report of several.
  std::string slug_end;
  bool planned = true;  // false: the experiment file does not compare these groups
};

enum class Severity { fair, unfair, note };

// A line of the list "Is this comparison fair?", derived from the records.
struct Statement {
  Severity severity = Severity::note;
  std::string text;
};

// An expectation of the experiment file ([expect.MODEL]), checked for the finished runs of the latest plan.
struct CheckedExpectation {
  std::string experiment;  // its name in a report of several; empty in a report of one
  std::string title;       // of the model
  experiments::Expectation expectation;
  std::vector<double> values;  // of the finished runs, in the metric's unit in the file; NaN: not defined
  std::vector<std::string> missed;  // one line per run that misses it
  bool holds() const { return missed.empty(); }
};

// One planned run with its settings and its final values.
struct RunRow {
  std::string key;
  std::string model;
  std::string title;  // of the model
  std::string strategy;
  std::int64_t seed = 0;
  std::string status;       // planned | running | finished | failed | interrupted
  std::int64_t epochs = 0;  // asked for
  std::int64_t epochs_done = 0;
  std::int64_t attempts = 0;
  double total_seconds = 0;                       // launch to end, of all its attempts
  std::string failure;                            // first error line, if it failed
  bool has_result = false;                        // finished, with final values
  bool times_count = true;                        // false: its times are not compared
  std::optional<std::string> times_problem = {};  // why they are not
  int disturbed_epochs = 0;                       // whose times are left out
  std::map<std::string, Value> settings;          // every resolved value by name
  std::map<std::string, double> values;  // final values by column: "validation_accuracy"; finite ones
};

// Means over seeds along a numeric axis: "ddp", "ddp, batch 64".
struct StudyLine {
  std::string label;
  std::vector<Point> points;  // x: the value of the axis, in order
};

struct StudiedMetric {
  std::string model;
  std::string title;  // of the model
  std::string metric;
  std::vector<StudyLine> lines;
  std::vector<std::string> runs;  // keys of the runs with a value
  int left_out = 0;               // runs whose times do not count
};

// The final metrics of all finished runs over a numeric axis with at least two values.
struct ParameterStudy {
  std::string axis;
  std::vector<double> values;          // ascending
  std::vector<std::string> tied;       // other axes that change with it
  std::string baseline;                // its value, if a comparison is along this axis; else empty
  std::vector<std::string> models;     // titles
  std::vector<StudiedMetric> metrics;  // by model, then metric
};

// A published number beside ours, in `unit`: from a table of a publication.
struct PublishedNumber {
  std::string source;  // "parallel-ml"
  std::string what;    // "cores: MLP, threads 2", "flowers: epoch 3"
  std::string metric;  // title: "Total training time"
  std::string unit;    // "% of the benchmark", "%", "s"; empty: none
  double published = 0;
  double published_sd = NAN;         // over its repeats
  int repeats = 1;                   // of the publication
  Point here;                        // mean with its 95 % t interval; percentages: geometric mean over pairs
  double sd = NAN;                   // over our runs; percentages have none
  std::string verdict;               // our word on this change; empty: there is no verdict on it
  std::vector<Caveat> caveats;       // of the verdict
  std::vector<std::string> remarks;  // what differs from the study, and runs that are left out
};

// Which strategies trained on which kind of device.
struct DeviceUse {
  std::string device;  // "cpu", "cuda"
  std::vector<std::string> strategies;
};

struct Report {
  std::string name;                      // of the experiment; of several: "a, b"
  std::vector<std::string> experiments;  // their names
  std::string selected;                  // the selection of runs: "model=mlp, since 2026-11-20"; empty: all
  std::string date;                      // UTC time of the last record
  std::vector<Comparison> comparisons;   // one per `[[compare]]` of each experiment
  std::vector<std::string> varying;      // settings that differ, for the columns of run tables
  std::vector<RunRow> runs;              // in the order of the plan
  std::vector<ParameterStudy> studies;
  std::vector<Statement> fairness;
  std::vector<CheckedExpectation> expectations;
  std::optional<experiments::Published> published;
  std::vector<PublishedNumber> published_numbers;
  std::vector<experiments::ProfiledData> data_profiles;
  std::vector<experiments::OwnMetric> own_metrics;              // that the user defines
  std::vector<DeviceUse> devices;                               // empty: nothing is recorded
  bool has_records = true;                                      // false: no rank has recorded its device
  std::vector<std::pair<std::string, std::string>> provenance;  // "Host" → "lab-node-03"
};

// The keys of the runs of the baseline and the arms, and of the independent runs.
std::vector<std::string> run_keys(const Cell& cell);

bool has_verdicts(const Comparison& comparison);  // false: there is no arm to compare with the baseline
// The metrics of all tasks on which the comparison has a verdict, in the order of the page. Tables have no column
// for others. `published_in`: those of the table of models and arms.
std::vector<const Metric*> judged_in(const Comparison& comparison);
std::vector<const Metric*> published_in(const Comparison& comparison);

// "single", or with the axis "batch 64" if the axis is not strategy, model or group.
std::string baseline_text(const experiments::Compare& compare);

// Margin of the PSNR in dB. PSNR is the mean squared error on a logarithmic scale, so this is a change of the
// error by the loss's ratio.
double psnr_margin(const experiments::LossMargin& margin);

double value_in(const RunRow& run, const std::string& column);         // a final value; NaN: it has none
std::string setting_text(const RunRow& run, const std::string& name);  // without quotes; empty: it has none

// "('a', 'b')": the names of the experiments, for queries in the report.
std::string experiments_in_sql(const Report& report);

// `text` in lower case. Characters other than a – z, 0 – 9 and dots become single hyphens.
std::string slug_of(const std::string& text);

// `slug`, or `slug`-2, `slug`-3 … if it is used. Adds it to `used`.
std::string unique_slug(const std::string& slug, std::set<std::string>& used);

}  // namespace trainyard::reports
