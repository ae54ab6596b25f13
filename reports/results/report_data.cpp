#include "reports/results/report_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "experiments/protocol/record.h"
#include "reports/format/words.h"
#include "reports/results/cells.h"

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
  result.devices_shared = launch.value("devices_shared", false);
  static const auto place = nlohmann::json::json_pointer() / "work" / "data" / "available";
  result.available_samples = launch.value(place, std::int64_t{0});
  result.commit = launch.value("commit", std::string());
  return result;
}

ReportData results_alone(const db::Database& database, const std::string& experiment) {
  ReportData data;
  data.experiment = experiment;
  data.plan = db::latest_plan(database, experiment);
  data.history = db::plan_history(database, experiment);
  data.runs = db::run_summaries(database, experiment);
  data.finals = db::final_metrics(database, experiment);
  for (db::RunEvidence& evidence : db::run_evidence(database, experiment))
    data.evidence.emplace(evidence.run_key, std::move(evidence));
  for (db::RunSummary& run : data.runs) {
    const db::RunEvidence* evidence = value_or_null(data.evidence, run.run_key);
    run.without_loss = run.kind == "foreign" && run.status == "finished" && evidence != nullptr &&
                       !(evidence->samples_an_epoch > 0);
  }
  for (db::Probe& probe : db::probes(database, experiment))
    data.probes[probe.run_key].push_back(std::move(probe));
  for (const auto& [key, launch] : db::effective_launches(database, experiment))
    data.launched[key] = launched_from(launch);
  data.earlier = db::earlier_results(database, experiment);
  add_own_metrics(database, data);
  return data;
}

}  // namespace

std::string sharing_text(const Launched& launched) {
  if (!launched.devices_shared) return "";
  if (launched.ranks == 0 || launched.devices == 0) return "more ranks than devices";
  const std::string ranks = counted_in_words(launched.ranks, "rank");
  const std::string devices = counted_in_words(launched.devices, "device");
  const auto threads = launched.circumstances.threads_per_rank;
  if (launched.ranks > launched.devices || threads <= 1) return fmt::format("{} on {}", ranks, devices);
  return fmt::format("{} with {} each on {}", ranks, counted_in_words(threads, "thread"), devices);
}

std::vector<const ReportData*> experiments_of(const ReportData& data) {
  if (data.parts.empty()) return {&data};
  std::vector<const ReportData*> parts;
  for (const ReportData& part : data.parts) parts.push_back(&part);
  return parts;
}

std::string last_record_time(const ReportData& data) {
  std::string last;
  for (const db::RunSummary& run : data.runs) last = std::max(last, run.updated);
  return last;
}

ReportData gather_results(const db::Database& database, const std::string& experiment) {
  ReportData data = results_alone(database, experiment);
  for (const std::string& other : db::earlier_experiments_with_runs_of(database, experiment))
    data.earlier_experiments.push_back(results_alone(database, other));
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
  if (!data.own_metrics.empty()) add_own_metrics(database, data);  // to the averages
  data.times = db::time_parts(database, experiment);
  data.step_events = db::step_events(database, experiment);
  data.rank_costs = db::rank_costs(database, experiment);
  data.packed = db::packed_runs(database);
  return data;
}

namespace {

template <typename Row>
void append_new(std::vector<Row>& all, std::vector<Row> more, const std::set<std::string>& known) {
  for (Row& row : more) {
    if (known.count(row.run_key) == 0) all.push_back(std::move(row));
  }
}

template <typename Value>
void append_missing(std::vector<Value>& all, const std::vector<Value>& more) {
  for (const Value& value : more) add_new(all, value);
}

void add_profiles(std::vector<experiments::ProfiledData>& all,
                  const std::vector<experiments::ProfiledData>& more) {
  const auto what = [](const experiments::ProfiledData& data) {
    return std::tie(data.dataset, data.source, data.identity);
  };
  for (const experiments::ProfiledData& data : more)
    if (std::ranges::none_of(all, [&](const auto& one) { return what(one) == what(data); }))
      all.push_back(data);
}

void add_published(std::optional<experiments::Published>& all,
                   const std::optional<experiments::Published>& more) {
  if (!all) all = more;
  if (!more) return;
  std::vector<experiments::PublishedSource>& sources = all->sources;
  for (const experiments::PublishedSource& source : more->sources)
    if (std::ranges::find(sources, source.name, &experiments::PublishedSource::name) == sources.end())
      sources.push_back(source);
}

// Adds what one experiment has more than the others, and leaves it without epochs, which may be large.
void add_part(ReportData& all, ReportData& part) {
  std::set<std::string> known;
  for (const db::RunSummary& run : all.runs) known.insert(run.run_key);
  all.experiment += (all.experiment.empty() ? "" : ", ") + part.experiment;
  append_new(all.runs, part.runs, known);
  append_new(all.finals, part.finals, known);
  append_new(all.averages, std::move(part.averages), known);
  append_new(all.replicas, std::move(part.replicas), known);
  append_new(all.times, std::move(part.times), known);
  append_new(all.step_events, std::move(part.step_events), known);
  all.packed = std::exchange(part.packed, {});
  all.launched.insert(part.launched.begin(), part.launched.end());
  all.evidence.insert(part.evidence.begin(), part.evidence.end());
  all.probes.insert(part.probes.begin(), part.probes.end());
  all.earlier.insert(part.earlier.begin(), part.earlier.end());
  append_missing(all.plan.varied, part.plan.varied);
  append_missing(all.plan.keys, part.plan.keys);
  append_missing(all.own_metrics, part.own_metrics);
  add_profiles(all.plan.data_profiles, part.plan.data_profiles);
  add_published(all.plan.published, part.plan.published);
}

using Conditions = std::map<std::string, std::vector<std::string>>;  // values by name

Conditions conditions_of(const ReportData& data, const std::vector<std::string>& where) {
  std::set<std::string> known;
  for (const db::RunSummary& run : data.runs) {
    for (const auto& [name, value] : run.axes) known.insert(name);
  }
  const std::vector<std::string> names(known.begin(), known.end());
  Conditions conditions;
  for (const std::string& text : where) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw UserError("--where \"" + text + "\" has no =", "write NAME=VALUE, as in --where model=mlp");
    const std::string name = text.substr(0, equals);
    if (known.count(name) == 0)
      throw UserError(
          fmt::format("--where: no run has a value called \"{}\"{}", name, name_advice(name, names)));
    conditions[name].push_back(text.substr(equals + 1));
  }
  return conditions;
}

// Whether `text` has the form "2026-11-20" or a longer beginning of "2026-11-20T09:30:12.345Z", and is a valid time.
bool is_time(const std::string& text) {
  const std::string first = "0000-01-01T00:00:00.000Z";
  if (text.size() < 10 || text.size() > first.size()) return false;
  const std::string whole = text + first.substr(text.size());
  return first[text.size()] != '0' && experiments::utc_time(whole) == whole;
}

std::string description(const Selection& selection) {
  std::vector<std::string> parts = selection.where;
  if (!selection.since.empty()) parts.push_back("since " + selection.since);
  return joined(parts);
}

template <typename Row>
void keep(std::vector<Row>& rows, const std::set<std::string>& keys) {
  std::erase_if(rows, [&](const Row& row) { return keys.count(row.run_key) == 0; });
}

// Keeps the data of these runs, in each experiment too. An experiment without runs is dropped.
void keep_runs(ReportData& data, const std::set<std::string>& keys) {
  keep(data.runs, keys);
  keep(data.finals, keys);
  keep(data.averages, keys);
  keep(data.replicas, keys);
  keep(data.times, keys);
  keep(data.step_events, keys);
  const auto unwanted = [&](const std::string& key) { return keys.count(key) == 0; };
  std::erase_if(data.plan.keys, unwanted);
  for (db::PlanEntry& entry : data.history) std::erase_if(entry.keys, unwanted);
  std::erase_if(data.launched, [&](const auto& entry) { return keys.count(entry.first) == 0; });
  for (ReportData& part : data.parts) keep_runs(part, keys);
  std::erase_if(data.parts, [](const ReportData& part) { return part.runs.empty(); });
}

}  // namespace

ReportData merged(std::vector<ReportData> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  ReportData all;
  for (ReportData& part : parts) {
    if (std::ranges::find(all.parts, part.experiment, &ReportData::experiment) != all.parts.end()) continue;
    add_part(all, part);
    all.parts.push_back(std::move(part));
  }
  return all;
}

void keep_selected(ReportData& data, const Selection& selection) {
  if (selection.where.empty() && selection.since.empty()) return;
  if (!selection.since.empty() && !is_time(selection.since))
    throw UserError("--since \"" + selection.since + "\" is not a time",
                    "write UTC as 2026-11-20 or 2026-11-20T09:30");
  const Conditions conditions = conditions_of(data, selection.where);
  std::set<std::string> keys;
  for (const db::RunSummary& run : data.runs) {
    const bool wanted =
        run.updated >= selection.since && std::ranges::all_of(conditions, [&](const auto& condition) {
          return std::ranges::find(condition.second, value_of(run, condition.first)) !=
                 condition.second.end();
        });
    if (wanted) keys.insert(run.run_key);
  }
  data.selected = description(selection);
  for (ReportData& part : data.parts) part.selected = data.selected;
  if (keys.empty()) throw UserError(fmt::format("no run of {} matches: {}", data.experiment, data.selected));
  keep_runs(data, keys);
}

ReportData gather(const db::Database& database, const Selection& selection) {
  std::vector<ReportData> parts;
  for (const std::string& experiment : selection.experiments) parts.push_back(gather(database, experiment));
  ReportData data = merged(std::move(parts));
  keep_selected(data, selection);
  return data;
}

}  // namespace trainyard::reports
