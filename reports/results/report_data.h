// Everything that a report is made from, gathered in one place: the answers to named queries of `db`. From
// here on nothing asks the database, so that a report is a pure function of this value (and tests invent
// one).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/queries/evidence.h"
#include "db/queries/queries.h"
#include "experiments/protocol/launch.h"

namespace trainyard::reports {

// The last attempt of a run, as it was launched.
struct Launched {
  experiments::Circumstances circumstances;
  std::vector<std::size_t> cores;  // of each rank; empty where ranks are not pinned
  bool host_exclusive = true;
  bool devices_shared = false;
  std::size_t devices = 0;  // distinct ones; 0: unknown
  std::size_t ranks = 0;    // 0: unknown
};

// "four ranks on two devices", "two ranks with two threads each on two cores": why the placement of a run
// makes its times useless. More runs do not help. Empty if the placement is fine.
std::string useless_placement(const Launched& launched);

struct ReportData {
  std::string experiment;                // its name; of several: "a, b"
  std::vector<std::string> merged_from;  // the names of several; empty: one
  std::string selected;  // what was left out by wish: "model=mlp, since 2026-11-20"; empty: nothing
  db::Plan plan;         // the latest
  // If several experiments make one report: by position in `plan.compare`, the keys of the runs whose own
  // experiment asks for the comparison. Empty: all runs.
  std::vector<std::set<std::string>> compared_runs;
  std::vector<db::PlanEntry> history;  // all plans, the latest last
  std::vector<db::RunSummary> runs;
  std::vector<db::FinalMetrics> finals;
  std::vector<db::EpochRow> averages;
  std::vector<db::EpochRow> replicas;
  std::vector<db::TimeParts> times;
  std::vector<db::PackedRun> packed;                     // of the whole database
  std::map<std::string, Launched> launched;              // by run key
  std::map<std::string, db::RunEvidence> evidence;       // by run key
  std::map<std::string, std::vector<db::Probe>> probes;  // by run key
  int schema_version = db::schema_version;
};

// Whether an experiment of this run asks for the comparison.
bool asks_for(const ReportData& data, const experiments::Compare& compare, const std::string& run_key);

// The time of the last record: what a report is dated by, so that the same database gives the same bytes.
std::string last_record_time(const ReportData& data);

// "('a', 'b')": the names of its experiments, for queries that people may run.
std::string experiments_in_sql(const ReportData& data);

// What verdicts are made of: everything but the epochs. UserError: no such experiment.
ReportData gather_results(const db::Database& database, const std::string& experiment);

// UserError: no such experiment, or none of its runs has finished an epoch.
ReportData gather(const db::Database& database, const std::string& experiment);

// Which runs a report is about: of one experiment or several, all of them or a part.

struct Selection {
  std::vector<std::string> experiments;  // at least one
  std::string since;                     // UTC, "2026-11-20" or "2026-11-20T09:30"; empty: all
  std::vector<std::string> where;  // "model=mlp": names must all hold, values of one name are alternatives
};

// What the database has of the selection. UserError: no such experiment, none of its runs has finished an
// epoch, an unknown name or no run left.
ReportData gather(const db::Database& database, const Selection& selection);

// Several experiments as one: a run that is in several is taken once. What tells runs of one model and
// strategy apart that no experiment varies by itself becomes a varied value, so that they stay in cells of
// their own.
ReportData merged(std::vector<ReportData> parts);

// Leaves out the runs that are not wanted, with all that hangs on them. UserError as above.
void keep_selected(ReportData& data, const Selection& selection);

}  // namespace trainyard::reports
