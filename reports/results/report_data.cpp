#include "reports/results/report_data.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
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
  result.host_exclusive = launch.value("host_exclusive", true);
  result.devices_shared = launch.value("devices_shared", false);
  return result;
}

}  // namespace

std::string useless_placement(const Launched& launched) {
  if (!launched.devices_shared) return "";
  if (launched.ranks == 0 || launched.devices == 0) return "more ranks than devices";
  const std::string ranks = counted_in_words(launched.ranks, "rank");
  const std::string devices = counted_in_words(launched.devices, "device");
  const auto threads = launched.circumstances.threads_per_rank;
  if (launched.ranks > launched.devices || threads <= 1) return fmt::format("{} on {}", ranks, devices);
  return fmt::format("{} with {} each on {}", ranks, counted_in_words(threads, "thread"), devices);
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
  return "(" + (one ? quoted(data.experiment) : joined(data.merged_from, quoted)) + ")";
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

namespace {

template <typename Row>
void append_new(std::vector<Row>& all, std::vector<Row> more, const std::set<std::string>& known) {
  for (Row& row : more) {
    if (known.count(row.run_key) == 0) all.push_back(std::move(row));
  }
}

template <typename Value>
void append_missing(std::vector<Value>& all, const std::vector<Value>& more) {
  for (const Value& value : more) {
    if (std::ranges::find(all, value) == all.end()) all.push_back(value);
  }
}

bool is_same(const experiments::Compare& one, const experiments::Compare& other) {
  return one.axis == other.axis && one.baseline == other.baseline;
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

void add_plan(db::Plan& plan, const db::Plan& more) {
  for (const experiments::Compare& compare : more.compare) {
    const bool known = std::ranges::any_of(
        plan.compare, [&](const experiments::Compare& one) { return is_same(one, compare); });
    if (!known) plan.compare.push_back(compare);
  }
  plan.expect.insert(plan.expect.end(), more.expect.begin(), more.expect.end());
  append_missing(plan.varied, more.varied);
  append_missing(plan.keys, more.keys);
  add_profiles(plan.data_profiles, more.data_profiles);
  add_published(plan.published, more.published);
}

// Names of values that differ between runs of one model and strategy, except the seed.
std::vector<std::string> differing_names(const std::vector<db::RunSummary>& runs) {
  std::map<std::string, const db::RunSummary*> first;
  std::vector<std::string> names;
  for (const db::RunSummary& run : runs) {
    const db::RunSummary*& like = first[fmt::format("{}\n{}", run.model, run.strategy)];
    if (like == nullptr) like = &run;
    for (const auto& [name, value] : run.axes) {
      const auto found = like->axes.find(name);
      const bool differs = found == like->axes.end() || found->second != value;
      if (differs && name != "seed" && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// A comparison with the runs of all experiments that have it.
struct Asked {
  experiments::Compare compare;
  std::set<std::string> keys;
};

void add_asked(std::vector<Asked>& asked, const ReportData& part) {
  for (const experiments::Compare& compare : part.plan.compare) {
    auto known = std::ranges::find_if(asked, [&](const Asked& one) { return is_same(one.compare, compare); });
    if (known == asked.end()) known = asked.insert(asked.end(), {compare, {}});
    for (const db::RunSummary& run : part.runs) known->keys.insert(run.run_key);
  }
}

struct Condition {
  std::string name;
  std::vector<std::string> values;
};

std::vector<Condition> conditions_of(const ReportData& data, const std::vector<std::string>& where) {
  std::set<std::string> known;
  for (const db::RunSummary& run : data.runs) {
    for (const auto& [name, value] : run.axes) known.insert(name);
  }
  const std::vector<std::string> names(known.begin(), known.end());
  std::vector<Condition> conditions;
  for (const std::string& text : where) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw UserError("--where \"" + text + "\" has no =", "write NAME=VALUE, as in --where model=mlp");
    const std::string name = text.substr(0, equals);
    if (known.count(name) == 0)
      throw UserError(
          fmt::format("--where: no run has a value called \"{}\"{}", name, name_advice(name, names)));
    auto condition = std::ranges::find(conditions, name, &Condition::name);
    if (condition == conditions.end()) condition = conditions.insert(condition, Condition{name, {}});
    condition->values.push_back(text.substr(equals + 1));
  }
  return conditions;
}

// Whether `text` has the form "2026-11-20" or a longer beginning of "2026-11-20T09:30:12.345Z".
bool is_written_as_time(const std::string& text) {
  const std::string pattern = "dddd-dd-ddTdd:dd:dd.dddZ";
  if (text.size() < 10 || text.size() > pattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (pattern[i] == 'd' ? !digit : text[i] != pattern[i]) return false;
  }
  return text.size() == pattern.size() || (pattern[text.size()] != 'd' && text.back() != 'T');
}

// Whether `text` also is a valid date and time of day.
bool is_time(const std::string& text) {
  if (!is_written_as_time(text)) return false;
  const auto number = [&](std::size_t at, std::size_t digits) {
    return at < text.size() ? std::stoi(text.substr(at, digits)) : 0;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  return day.ok() && number(11, 2) < 24 && number(14, 2) < 60 && number(17, 2) < 60;
}

std::string description(const Selection& selection) {
  std::string text;
  for (const std::string& where : selection.where) text += (text.empty() ? "" : ", ") + where;
  if (!selection.since.empty()) text += (text.empty() ? "" : ", ") + ("since " + selection.since);
  return text;
}

template <typename Row>
void keep(std::vector<Row>& rows, const std::set<std::string>& keys) {
  std::erase_if(rows, [&](const Row& row) { return keys.count(row.run_key) == 0; });
}

}  // namespace

ReportData merged(std::vector<ReportData> parts) {
  std::vector<Asked> asked;
  if (parts.size() > 1)
    for (ReportData& part : parts) {
      if (part.plan.compare.empty())
        part.plan.compare.emplace_back();  // the default, as in a separate report
      add_asked(asked, part);
    }
  ReportData all = std::move(parts.front());
  if (parts.size() > 1) all.merged_from = {all.experiment};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    ReportData& part = parts[i];
    std::set<std::string> known;
    for (const db::RunSummary& run : all.runs) known.insert(run.run_key);
    all.experiment += ", " + part.experiment;
    all.merged_from.push_back(part.experiment);
    append_new(all.runs, std::move(part.runs), known);
    append_new(all.finals, std::move(part.finals), known);
    append_new(all.averages, std::move(part.averages), known);
    append_new(all.replicas, std::move(part.replicas), known);
    append_new(all.times, std::move(part.times), known);
    all.launched.merge(part.launched);
    all.evidence.merge(part.evidence);
    all.probes.merge(part.probes);
    std::ranges::move(part.history, std::back_inserter(all.history));
    add_plan(all.plan, part.plan);
  }
  std::ranges::stable_sort(all.history, {}, &db::PlanEntry::time);
  for (const experiments::Compare& compare : all.plan.compare)
    for (const Asked& one : asked)
      if (is_same(one.compare, compare)) all.compared_runs.push_back(one.keys);
  if (parts.size() > 1) append_missing(all.plan.varied, differing_names(all.runs));
  return all;
}

void keep_selected(ReportData& data, const Selection& selection) {
  if (selection.where.empty() && selection.since.empty()) return;
  if (!selection.since.empty() && !is_time(selection.since))
    throw UserError("--since \"" + selection.since + "\" is not a time",
                    "write UTC as 2026-11-20 or 2026-11-20T09:30");
  const std::vector<Condition> conditions = conditions_of(data, selection.where);
  std::set<std::string> keys;
  for (const db::RunSummary& run : data.runs) {
    const bool wanted =
        run.updated >= selection.since && std::ranges::all_of(conditions, [&](const Condition& condition) {
          return std::ranges::find(condition.values, value_of(run, condition.name)) != condition.values.end();
        });
    if (wanted) keys.insert(run.run_key);
  }
  data.selected = description(selection);
  if (keys.empty()) throw UserError(fmt::format("no run of {} matches: {}", data.experiment, data.selected));
  keep(data.runs, keys);
  keep(data.finals, keys);
  keep(data.averages, keys);
  keep(data.replicas, keys);
  keep(data.times, keys);
  const auto unwanted = [&](const std::string& key) { return keys.count(key) == 0; };
  std::erase_if(data.plan.keys, unwanted);
  for (db::PlanEntry& entry : data.history) std::erase_if(entry.keys, unwanted);
  std::erase_if(data.launched, [&](const auto& entry) { return keys.count(entry.first) == 0; });
}

ReportData gather(const db::Database& database, const Selection& selection) {
  std::vector<ReportData> parts;
  for (const std::string& experiment : selection.experiments) parts.push_back(gather(database, experiment));
  ReportData data = merged(std::move(parts));
  keep_selected(data, selection);
  return data;
}

}  // namespace trainyard::reports
