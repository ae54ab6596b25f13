#include "reports/results/report_data.h"

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/joined.h"

namespace trainyard::reports {

namespace {

Launched launched_from(const nlohmann::json& launch) {
  Launched result;
  if (const auto found = launch.find("circumstances"); found != launch.end() && found->is_object()) {
    result.circumstances = experiments::circumstances_from_json(*found);
  }
  for (const auto& cores : launch.value("cores", nlohmann::json::array()))
    result.cores.push_back(cores.size());
  std::set<std::string> devices;
  for (const auto& device : launch.value("devices", nlohmann::json::array()))
    if (device.is_string()) devices.insert(device.get<std::string>());
  result.ranks = launch.value("devices", nlohmann::json::array()).size();
  result.devices = devices.size();
  result.host_exclusive = launch.value("host_exclusive", true);
  result.devices_shared = launch.value("devices_shared", false);
  return result;
}

}  // namespace

std::string useless_placement(const Launched& launched) {
  if (!launched.devices_shared) return "";
  if (launched.ranks == 0 || launched.devices == 0) return "more ranks than devices";
  const std::string ranks = models::counted_in_words(launched.ranks, "rank");
  const std::string devices = models::counted_in_words(launched.devices, "device");
  const auto threads = launched.circumstances.threads_per_rank;
  if (launched.ranks > launched.devices || threads <= 1) return ranks + " on " + devices;
  return ranks + " with " + models::counted_in_words(threads, "thread") + " each on " + devices;
}

bool asks_for(const ReportData& data, const experiments::Compare& compare, const std::string& run_key) {
  for (std::size_t i = 0; i < data.compared_runs.size() && i < data.plan.compare.size(); ++i) {
    const experiments::Compare& planned = data.plan.compare[i];
    if (planned.axis == compare.axis && planned.baseline == compare.baseline)
      return data.compared_runs[i].contains(run_key);
  }
  return true;
}

std::string last_record_time(const ReportData& data) {
  std::string last;
  for (const db::RunSummary& run : data.runs) last = std::max(last, run.updated);
  return last;
}

std::string experiments_in_sql(const ReportData& data) {
  const auto quoted = [](const std::string& name) {
    std::string text;
    for (const char character : name) text += character == '\'' ? "''" : std::string(1, character);
    return "'" + text + "'";
  };
  const bool one = data.merged_from.empty();
  return "(" + (one ? quoted(data.experiment) : models::joined(data.merged_from, quoted)) + ")";
}

ReportData gather_results(const db::Database& database, const std::string& experiment) {
  ReportData data;
  data.experiment = experiment;
  data.plan = db::latest_plan(database, experiment);
  data.history = db::plan_history(database, experiment);
  data.runs = db::run_summaries(database, experiment);
  data.finals = db::final_metrics(database, experiment);
  for (db::RunEvidence& evidence : db::run_evidence(database, experiment))
    data.evidence.emplace(evidence.run_key, std::move(evidence));
  for (db::Probe& probe : db::probes(database, experiment))
    data.probes[probe.run_key].push_back(std::move(probe));
  for (const db::RunSummary& run : data.runs) {
    const std::vector<db::Attempt> attempts = db::attempts_of_run(database, run.run_key);
    if (!attempts.empty()) data.launched[run.run_key] = launched_from(attempts.back().launch);
  }
  return data;
}

ReportData gather(const db::Database& database, const std::string& experiment) {
  ReportData data = gather_results(database, experiment);
  data.averages = db::epoch_averages(database, experiment);
  if (data.averages.empty()) {
    throw UserError("no run of experiment \"" + experiment + "\" has finished an epoch",
                    "train it first: trainyard run FILE");
  }
  data.replicas = db::epoch_replicas(database, experiment);
  data.times = db::time_parts(database, experiment);
  data.packed = db::packed_runs(database);
  return data;
}

}  // namespace trainyard::reports
