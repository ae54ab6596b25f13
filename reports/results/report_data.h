// All data of a report, read by named queries of `db`. A report is a pure function of this value and makes no
// other queries, so tests can invent one.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/queries/earlier_results.h"
#include "db/queries/evidence.h"
#include "db/queries/queries.h"
#include "experiments/protocol/launch.h"

namespace trainyard::reports {

// The effective attempt of a run, as it was launched.
struct Launched {
  experiments::Circumstances circumstances;
  std::vector<std::size_t> cores;  // per rank; empty if ranks are not pinned
  bool devices_shared = false;
  std::size_t devices = 0;             // distinct ones; 0: unknown
  std::size_t ranks = 0;               // 0: unknown
  std::int64_t available_samples = 0;  // for training; 0: unknown
  std::string commit = {};             // of trainyard; empty: unknown
};

// How the ranks of a run shared devices: "four ranks on two devices", "two ranks with two threads each on two cores".
// Empty if they did not.
std::string sharing_text(const Launched& launched);

struct ReportData {
  std::string experiment;  // its name; for several: "a, b"
  // Several experiments in one report: each with its own plan, runs and evidence, without epochs. The members
  // below then have the runs of all, and `plan` has their data profiles, published numbers and keys. Empty for
  // one experiment.
  std::vector<ReportData> parts;
  std::string selected;  // the selection of runs: "model=mlp, since 2026-11-20"; empty: all runs
  db::Plan plan;         // the latest
  std::vector<db::PlanEntry> history;  // all plans, the latest last
  std::vector<db::RunSummary> runs;
  std::vector<db::FinalMetrics> finals;
  std::vector<db::EpochRow> averages;
  std::vector<db::EpochRow> replicas;
  std::vector<db::TimeParts> times;
  std::vector<db::StepEvent> step_events;
  std::vector<db::RankCost> rank_costs;
  std::vector<db::PackedRun> packed;                // of the whole database
  std::vector<experiments::OwnMetric> own_metrics;  // of the user, in the file or in records
  std::vector<std::string> odd_metrics;  // what is left out because definitions differ: "reward: 4 runs …"
  std::map<std::string, Launched> launched;                       // by run key
  std::map<std::string, db::RunEvidence> evidence;                // by run key
  std::map<std::string, std::vector<db::Probe>> probes;           // by run key
  std::map<std::string, std::vector<db::EarlierResult>> earlier;  // removed or replaced results, by run key
  // Experiments that planned some of the same runs, and were planned first. Their own member is empty.
  std::vector<ReportData> earlier_experiments;
  int schema_version = db::schema_version;
  bool of_file = false;  // runs of a file that trainyard did not make (runs_file.h): nothing can be checked
};

// The experiments of the report, each with its own plan.
std::vector<const ReportData*> experiments_of(const ReportData& data);

// The time of the last record. It is the date of a report, so the same database gives the same bytes.
std::string last_record_time(const ReportData& data);

// Provenance of a report: runs, data, machines and programs. Names and values in the order of the page, without unknown
// values.
std::vector<std::pair<std::string, std::string>> provenance(const ReportData& data);

// The data for verdicts, without epochs. UserError: no such experiment.
ReportData gather_results(const db::Database& database, const std::string& experiment);

// All data. UserError: no such experiment, or none of its runs has finished an epoch.
ReportData gather(const db::Database& database, const std::string& experiment);

// The runs of a report: from one or several experiments, all or a part.
struct Selection {
  std::vector<std::string> experiments;  // at least one
  std::string since;                     // UTC, "2026-11-20" or "2026-11-20T09:30"; empty: all
  std::vector<std::string> where;  // "model=mlp": all names must match, values of one name are alternatives
};

// The data of the selection. UserError: no such experiment, none of its runs has finished an epoch, an
// unknown name or no matching run.
ReportData gather(const db::Database& database, const Selection& selection);

// Several experiments as one. A run that is in several is in the joint members once.
ReportData merged(std::vector<ReportData> parts);

// Removes the runs that are not selected, with their data. UserError as above.
void keep_selected(ReportData& data, const Selection& selection);

}  // namespace trainyard::reports
