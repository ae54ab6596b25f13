#include "reports/results/cells.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/named_row.h"
#include "experiments/design/cell_place.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

namespace {

using Further = experiments::CellPlace::Further;

const std::string all_runs = "all runs";  // of a file without models

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> by_name(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

std::string label_of(const std::string& title, const Further& further) {
  std::string text = title.empty() ? "all models" : title;
  for (const auto& [name, value] : further) text.append(", ").append(name).append(" ").append(value);
  return text;
}

// Values that are equal for runs of the same training with different seeds: all resolved values except the
// pairing values, and the files of the user's own program.
using Work = std::map<std::string, Value>;

Work work_of(const db::RunSummary& run, const experiments::Compare& compare) {
  Work work = run.axes;
  work.erase("seed");
  for (const std::string& name : compare.pair) work.erase(name);
  work["data source"] = run.data_source;
  work["files of the program"] = run.files;
  return work;
}

// Whether two texts are equal, or differ only where `left` has `from` and `right` has `to`: "s3.txt" and "s12.txt" with
// 3 and 12.
bool equal_but_for(std::string_view left, std::string_view right, std::string_view from,
                   std::string_view to) {
  using Place = std::pair<std::size_t, std::size_t>;
  std::vector<Place> open{{0, 0}};
  std::set<Place> seen;
  while (!open.empty()) {
    const auto [i, j] = open.back();
    open.pop_back();
    if (i == left.size() && j == right.size()) return true;
    if (!seen.insert({i, j}).second) continue;
    if (!from.empty() && left.substr(i).starts_with(from) && right.substr(j).starts_with(to))
      open.emplace_back(i + from.size(), j + to.size());
    if (i < left.size() && j < right.size() && left[i] == right[j]) open.emplace_back(i + 1, j + 1);
  }
  return false;
}

// Whether two runs of one arm have the same command, but for the seed that is filled in.
bool same_command(const db::RunSummary& run, const db::RunSummary& other) {
  return run.command == other.command ||
         equal_but_for(run.command, other.command, std::to_string(run.seed), std::to_string(other.seed));
}

// Number of the last journal entry that plans each run, from 1. Runs without an entry are missing.
std::map<std::string, std::size_t> last_planned(const ReportData& data) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < data.history.size(); ++i)
    for (const std::string& key : data.history[i].keys) last[key] = i + 1;
  return last;
}

class CellBuilder {
 public:
  CellBuilder(const ReportData& data, const experiments::Compare& compare)
      : data_(data), compare_(compare), varied_(by_name(data.plan.varied)), last_(last_planned(data)) {
    for (const db::FinalMetrics& final : data.finals) finals_[final.run_key] = &final;
  }

  void add(const db::RunSummary& run) {
    const auto value_in = [&](const std::string& name) { return value_of(run, name); };
    const experiments::CellPlace place = experiments::cell_place(value_in, compare_, varied_);
    const auto* final = value_or_null(finals_, run.run_key);
    CellRuns& cell = cell_for(run, place);
    ArmRuns& arm = experiments::is_limit(compare_, run.kind, place.arm) ? arm_in(cell.limits, place.arm)
                                                                        : arm_for(cell, place.arm);
    arm.runs.push_back({compare_.pair.empty() ? run.run_key : place.pair, &run,
                        final == nullptr ? nullptr : *final, value_or_null(data_.launched, run.run_key)});
  }

  std::vector<CellRuns> result() {
    std::erase_if(cells_,
                  [](const CellRuns& cell) { return cell.baseline.runs.empty() && cell.arms.empty(); });
    std::set<std::string> used;
    for (CellRuns& cell : cells_) {
      cell.label = label_of(cell.label, distinguishing(cell.further));
      if (cell.label.starts_with(all_runs + ", ")) cell.label.erase(0, all_runs.size() + 2);
      keep_latest(cell);
      cell.slug = unique_slug(slug_of(label_of(cell.model, cell.further)), used);
    }
    return std::move(cells_);
  }

 private:
  // The values that differ between cells. All cells have the same names in the same order.
  Further distinguishing(const Further& further) const {
    Further differing;
    for (std::size_t i = 0; i < further.size(); ++i)
      if (std::ranges::any_of(cells_, [&](const CellRuns& cell) { return cell.further[i] != further[i]; }))
        differing.push_back(further[i]);
    return differing;
  }

  CellRuns& cell_for(const db::RunSummary& run, const experiments::CellPlace& of_run) {
    const auto [place, added] = places_.try_emplace(of_run.cell(), cells_.size());
    if (added) {
      CellRuns cell;
      cell.model = of_run.model;
      cell.further = of_run.further;
      cell.label = !cell.model.empty() ? title_of(run) : data_.of_file ? all_runs : title_of(cell.model);
      // differing values are appended later
      cell.baseline.value = compare_.baseline;
      cells_.push_back(std::move(cell));
    }
    return cells_[place->second];
  }

  static ArmRuns& arm_for(CellRuns& cell, const std::string& value) {
    return value == cell.baseline.value ? cell.baseline : arm_in(cell.arms, value);
  }

  static ArmRuns& arm_in(std::vector<ArmRuns>& arms, const std::string& value) {
    const auto found = std::ranges::find(arms, value, &ArmRuns::value);
    if (found != arms.end()) return *found;
    arms.push_back({.value = value, .runs = {}});
    return arms.back();
  }

  std::size_t last_entry(const ArmRuns& arm) const {
    std::size_t latest = 0;
    for (const Observation& observation : arm.runs) latest = std::max(latest, entry_of(observation));
    return latest;
  }

  std::size_t entry_of(const Observation& observation) const {
    const std::size_t* entry = value_or_null(last_, observation.run->run_key);
    return entry == nullptr ? 0 : *entry;
  }

  const std::string& toml_of(std::size_t entry) const {
    static const std::string none;
    return entry == 0 ? none : data_.history[entry - 1].toml;
  }

  // Removes arms that the file does not have any more. Arms that `--where` left out of the last plan stay.
  void keep_latest(CellRuns& cell) const {
    std::size_t latest = last_entry(cell.baseline);
    for (const ArmRuns& arm : cell.arms) latest = std::max(latest, last_entry(arm));
    keep_latest_work(cell.baseline);
    for (std::vector<ArmRuns>* arms : {&cell.arms, &cell.limits}) {
      std::erase_if(*arms, [&](const ArmRuns& arm) { return toml_of(last_entry(arm)) != toml_of(latest); });
      for (ArmRuns& arm : *arms) keep_latest_work(arm);
    }
  }

  // Removes runs of an earlier training, for example if the arm was planned again with other epochs.
  void keep_latest_work(ArmRuns& arm) const {
    const std::size_t latest = last_entry(arm);
    std::map<Work, const db::RunSummary*> works;
    for (const Observation& observation : arm.runs)
      if (entry_of(observation) == latest)
        works.emplace(work_of(*observation.run, compare_), observation.run);
    std::vector<const db::RunSummary*> versions;  // one run of each earlier version with results
    std::erase_if(arm.runs, [&](const Observation& observation) {
      const auto found = works.find(work_of(*observation.run, compare_));
      if (found != works.end() &&
          (entry_of(observation) == latest || has_command_of(*found->second, observation)))
        return false;
      if (has_result(observation) && std::ranges::none_of(versions, [&](const db::RunSummary* version) {
            return same_version(*version, observation);
          }))
        versions.push_back(observation.run);
      return true;
    });
    arm.earlier_versions = versions.size();
    std::map<std::string, std::size_t> latest_of_pair;
    for (const Observation& observation : arm.runs) {
      std::size_t& entry = latest_of_pair[observation.pair];
      entry = std::max(entry, entry_of(observation));
    }
    std::set<std::string> taken;
    std::erase_if(arm.runs, [&](const Observation& observation) {
      return entry_of(observation) != latest_of_pair[observation.pair] ||
             !taken.insert(observation.pair).second;
    });
  }

  bool has_result(const Observation& observation) const {
    return observation.final != nullptr || data_.earlier.contains(observation.run->run_key);
  }

  bool same_version(const db::RunSummary& version, const Observation& observation) const {
    return work_of(version, compare_) == work_of(*observation.run, compare_) &&
           has_command_of(version, observation);
  }

  // Pairs by other values than the seed may fill in anything, so that only the seed can be checked.
  bool has_command_of(const db::RunSummary& latest, const Observation& observation) const {
    const bool pairs_seeds = compare_.pair.empty() || compare_.pair == std::vector<std::string>{"seed"};
    return !pairs_seeds || same_command(latest, *observation.run);
  }

  const ReportData& data_;
  const experiments::Compare& compare_;
  std::vector<std::string> varied_;
  std::map<std::string, std::size_t> last_;
  std::map<std::string, const db::FinalMetrics*> finals_;
  std::map<experiments::CellPlace::Cell, std::size_t> places_;
  std::vector<CellRuns> cells_;
};

}  // namespace

std::vector<const ArmRuns*> CellRuns::compared() const {
  std::vector<const ArmRuns*> all{&baseline};
  for (const ArmRuns& arm : arms) all.push_back(&arm);
  return all;
}

std::vector<CellRuns> make_cells(const ReportData& data, const experiments::Compare& compare) {
  CellBuilder builder(data, compare);
  for (const db::RunSummary& run : data.runs) builder.add(run);
  return builder.result();
}

bool value_counts(const Observation& observation, const Metric& metric) {
  if (!metric.kind->is_cost() || observation.final->times_count) return true;
  return !metric.kind->depends_on_others && !observation.final->fewer_replicas &&
         observation.final->times_problem != db::times_not_needed;
}

const Observation* partner_of(const Observation& run, const ArmRuns& arm) {
  return row_or_null(arm.runs, &Observation::pair, run.pair);
}

const Observation* compared_with(const ArmRuns& baseline, const ArmRuns& arm, std::size_t i, bool paired) {
  if (paired) return partner_of(arm.runs[i], baseline);
  return baseline.runs.empty() ? nullptr : &baseline.runs[i % baseline.runs.size()];
}

bool is_open(const Observation& observation) {
  return observation.final == nullptr && observation.run->status != "failed";
}

std::string name_of(const db::RunSummary& run, const std::string& model,
                    const std::vector<std::string>& varied) {
  std::string text = fmt::format("{} {} seed {}", model, run.strategy, run.seed);
  for (const std::string& name : varied) {
    if (name == "model" || name == "strategy" || name == "seed") continue;
    if (const std::string value = value_of(run, name); !value.empty())
      text += fmt::format(" {}={}", name, value);
  }
  return text;
}

std::vector<std::string> varying_axes(const ReportData& data) {
  static const std::set<std::string> arm{"model", "strategy", "seed"};
  std::vector<std::string> names;
  for (const std::string& name : data.plan.varied)
    if (!arm.contains(name)) names.push_back(name);
  std::map<std::pair<std::string, std::string>, const db::RunSummary*> first;
  std::set<std::string> found;
  for (const db::RunSummary& run : data.runs) {
    const db::RunSummary& other = *first.try_emplace({run.model, run.strategy}, &run).first->second;
    for (const auto& [name, value] : run.axes)
      if (const auto before = other.axes.find(name); before != other.axes.end() && before->second != value)
        found.insert(name);
  }
  if (contains(names, "batch") || found.contains("batch")) found.erase("global_batch");
  for (const std::string& name : found)
    if (!arm.contains(name) && !contains(names, name)) names.push_back(name);
  return names;
}

std::string value_of(const db::RunSummary& run, const std::string& name) {
  const auto found = run.axes.find(name);
  if (found == run.axes.end())
    return name == "model"      ? run.model
           : name == "strategy" ? run.strategy
           : name == "seed"     ? std::to_string(run.seed)
                                : "";
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  return trainyard::to_text(found->second);
}

}  // namespace trainyard::reports
