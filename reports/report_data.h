// Everything that a report is made from, gathered in one place: the answers to named queries of `db`. From
// here on nothing asks the database, so that a report is a pure function of this value (and tests invent
// one).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/queries.h"
#include "experiments/launch.h"

namespace trainyard::reports {

// The last attempt of a run, as it was launched.
struct Launched {
  experiments::Circumstances circumstances;
  std::vector<std::size_t> cores;  // of each rank; empty where ranks are not pinned
  bool host_exclusive = true;
  bool devices_shared = false;
};

struct ReportData {
  std::string experiment;
  db::Plan plan;                       // the latest
  std::vector<db::PlanEntry> history;  // all plans, the latest last
  std::vector<db::RunSummary> runs;
  std::vector<db::FinalMetrics> finals;
  std::vector<db::EpochRow> averages;
  std::vector<db::EpochRow> replicas;
  std::vector<db::TimeParts> times;
  std::map<std::string, Launched> launched;  // by run key
  int schema_version = db::schema_version;
};

// UserError: no such experiment, or none of its runs has finished an epoch.
ReportData gather(const db::Database& database, const std::string& experiment);

}  // namespace trainyard::reports
