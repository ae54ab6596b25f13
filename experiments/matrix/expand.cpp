#include "experiments/matrix/expand.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "experiments/config/key_lookup.h"
#include "experiments/design/cell_place.h"
#include "experiments/design/contract.h"
#include "experiments/matrix/resolve_run.h"
#include "experiments/matrix/selection.h"
#include "models/metrics.h"

namespace trainyard::experiments {

namespace {

std::size_t length(const Dimension& dimension) {
  return dimension.front().values.size();
}

// Number of runs of the matrix before [[exclude]]. Saturates instead of overflowing.
std::size_t product_size(const Matrix& matrix) {
  constexpr std::size_t enough = std::size_t{1} << 62;
  std::size_t size = matrix.dimensions.empty() ? 0 : 1;
  for (const Dimension& dimension : matrix.dimensions)
    size = size > enough / length(dimension) ? enough : size * length(dimension);
  return size;
}

// The index-th point of the product. The last dimension varies fastest.
MatrixPoint matrix_point(const Matrix& matrix, std::size_t index) {
  MatrixPoint point{matrix.at, {}};
  for (auto dimension = matrix.dimensions.rbegin(); dimension != matrix.dimensions.rend(); ++dimension) {
    for (const Axis& axis : *dimension) point.values[axis.name] = axis.values[index % length(*dimension)];
    index /= length(*dimension);
  }
  return point;
}

// The rows of [[exclude]]. It records which of them have removed a run.
// A run costs one look-up per set of keys that the rows have, whatever their number.
class Exclusion {
 public:
  explicit Exclusion(const std::vector<Row>& rows) : rows_(rows), used_(rows.size(), false) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::string> names;
      std::vector<Value> values;
      for (const auto& [name, setting] : rows[i].settings) {
        names.push_back(name);
        values.push_back(setting.value);
      }
      rows_by_values_[names][values].push_back(i);
    }
  }

  bool removes(const Run& run) {
    if (rows_.empty()) return false;
    const auto values = values_by_name(run);
    bool removed = false;
    for (const auto& [names, rows] : rows_by_values_) {
      std::vector<Value> here;  // of the run, with these names
      for (const std::string& name : names)
        if (const auto value = values.find(name); value != values.end()) here.push_back(value->second);
      const auto found = rows.find(here);
      if (found == rows.end()) continue;
      removed = true;
      for (const std::size_t row : found->second) used_[row] = true;
    }
    return removed;
  }

  void report_unused(Diagnostics& problems) const {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (!used_[i]) problems.warning(rows_[i].at, "[[exclude]] matches no run of the matrix");
  }

 private:
  using RowsByValues = std::map<std::vector<Value>, std::vector<std::size_t>>;

  const std::vector<Row>& rows_;
  std::vector<bool> used_;
  std::map<std::vector<std::string>, RowsByValues> rows_by_values_;  // by the keys of the rows
};

// The point of an [[include]] row. Empty if a value of an axis is missing or wrong.
std::optional<MatrixPoint> included_point(const Matrix& matrix, const Row& row, Diagnostics& problems) {
  MatrixPoint point{row.at, row.settings};
  bool complete = !row.broken;
  const auto missing = [&](const std::string& axis, const std::string& why) {
    if (std::ranges::find(row.wrong, axis) != row.wrong.end()) return;
    problems.error(row.at, "[[include]] must set {}{}", axis, why);
    complete = false;
  };
  for (const Dimension& dimension : matrix.dimensions)
    for (const Axis& axis : dimension) {
      if (point.values.contains(axis.name)) continue;
      if (axis.values.size() == 1)
        point.values[axis.name] = axis.values.front();
      else
        missing(axis.name, fmt::format(", because the matrix has {} values of it", axis.values.size()));
    }
  if (!point.values.contains("model") && matrix.axis("model") == nullptr) missing("model", "");
  if (!complete) return std::nullopt;
  return point;
}

bool suits_model(const Row& row, const models::Model& model, Diagnostics& problems) {
  const std::size_t errors = problems.errors();
  for (const auto& [name, setting] : row.settings)
    if (run_parameter(name) == nullptr && hyperparameter(model, name) == nullptr)
      problems.error(setting.at, "{} is not a key of model {}", name, in_quotes(model.name));
  return problems.errors() == errors;
}

// The runs in order, each once. A repetition is an error, unless --set has made different runs equal.
class Collection {
 public:
  Collection(bool may_repeat, Diagnostics& problems) : may_repeat_(may_repeat), problems_(problems) {}

  void add(const MatrixPoint& point, Run run, const Location& threads_at) {
    const auto [same, is_new] = first_.try_emplace(work(run), runs_.size());
    if (!is_new && may_repeat_) return;
    if (!is_new) return repeated(point.at, runs_[same->second].run, run);
    const auto strategy = point.values.find("strategy");
    runs_.push_back(
        {std::move(run), strategy == point.values.end() ? point.at : strategy->second.at, threads_at});
  }

  std::vector<ExpandedRun> finished() {
    for (const auto& [at, text, more] : repetitions_)
      problems_.error(at, text + (more > 0 ? fmt::format(" ({} more like it)", more) : ""));
    return std::move(runs_);
  }

 private:
  struct Repetition {
    Location at;
    std::string text;
    std::size_t more = 0;
  };

  // The data is found later. Until then, the name of the data set represents it.
  static std::string work(Run run) {
    run.data.source = run.data.dataset;
    return canonical_work(run);
  }

  // One error per location.
  void repeated(const Location& at, const Run& first, const Run& second) {
    for (Repetition& known : repetitions_)
      if (known.at.line == at.line && known.at.column == at.column) {
        ++known.more;
        return;
      }
    repetitions_.push_back(
        {at, fmt::format("the run \"{}\" does the same work as \"{}\"; leave one out with [[exclude]]",
                         label(second), label(first))});
  }

  bool may_repeat_;
  Diagnostics& problems_;
  std::vector<ExpandedRun> runs_;
  std::map<std::string, std::size_t> first_;
  std::vector<Repetition> repetitions_;
};

void expand_matrix(const ExperimentConfig& config, Collection& runs, Diagnostics& problems) {
  if (config.matrix.axis("model") == nullptr) {
    if (config.matrix.given && !config.matrix.broken)  // else another error explains it
      problems.error(config.matrix.at, "the matrix has no model; add one, as in model = [\"mlp\"]");
    return;
  }
  Exclusion exclusion(config.exclude);
  const std::size_t count = product_size(config.matrix);
  for (std::size_t i = 0; i < count; ++i) {
    const MatrixPoint point = matrix_point(config.matrix, i);
    Diagnostics own;  // problems of excluded runs are ignored
    Run run = resolve(config, point, own);
    if (exclusion.removes(run)) continue;
    problems.add_all(own);
    runs.add(point, std::move(run), RunSettings(config, point).place("threads"));
  }
  if (!config.matrix.broken) exclusion.report_unused(problems);
}

void expand_rows(const ExperimentConfig& config, Collection& runs, Diagnostics& problems) {
  for (const Row& row : config.include) {
    const auto point = included_point(config.matrix, row, problems);
    if (!point) continue;
    const auto& model = std::get<std::string>(point->values.at("model").value);
    if (!suits_model(row, *model_or_null(model, config.declared), problems)) continue;
    Run run = resolve(config, *point, problems);
    runs.add(*point, std::move(run), RunSettings(config, *point).place("threads"));
  }
}

// The different values of `axis`, in the order of the runs.
std::vector<Value> axis_values(const std::string& axis, const std::vector<ExpandedRun>& runs) {
  std::vector<Value> found;
  std::set<Value> seen;
  for (const ExpandedRun& each : runs) {
    const auto values = values_by_name(each.run);
    const auto value = values.find(axis);
    if (value != values.end() && seen.insert(value->second).second) found.push_back(value->second);
  }
  return found;
}

std::string wanted_baseline(const CompareTable& table) {
  return table.baseline ? plain_text(*table.baseline) : "single";
}

// The axis value that is the baseline. Empty if there is none.
std::optional<Value> baseline(const CompareTable& table, const std::vector<Value>& values) {
  const std::string wanted = wanted_baseline(table);
  if (!table.baseline && table.compare.axis != "strategy") return std::nullopt;
  const auto found = std::ranges::find_if(values, [&](const Value& value) { return means(wanted, value); });
  if (found == values.end()) return std::nullopt;
  return *found;
}

void report_baseline(const CompareTable& table, const std::vector<Value>& values, Diagnostics& problems) {
  const std::string& axis = table.compare.axis;
  if (values.empty()) {
    problems.error(table.at, "no run has a value of the axis " + axis);
  } else if (!table.baseline && axis != "strategy") {
    problems.error(table.at, "the comparison of {} has no baseline; choose from {}", axis,
                   joined(values, plain_text));
  } else {
    problems.error(table.baseline_at, "baseline {} is not a value of {}; choose from {}",
                   in_quotes(wanted_baseline(table)), axis, joined(values, plain_text));
  }
}

void warn_of_differences(const std::map<std::string, Value>& baseline,
                         const std::map<std::string, Value>& arm, const Compare& compare, const Location& at,
                         Diagnostics& problems) {
  for (const TermDifference& difference : differing_terms(stated_by(baseline), stated_by(arm), compare)) {
    if (difference.declared) continue;
    problems.warning(
        at,
        "NOT COMPARABLE: {} {} against {}: {}; make it equal, or declare the difference with differs = [{}]",
        plain_text(arm.at("model")), plain_text(arm.at(compare.axis)), compare.baseline, to_text(difference),
        in_quotes(difference.declare_as));
  }
}

// Warns once per arm of a cell. Does nothing if the file has errors: its values may not make a network.
void warn_of_differences(const Compare& compare, const CompareTable& table,
                         const std::vector<std::string>& varied, const std::vector<ExpandedRun>& runs,
                         Diagnostics& problems) {
  if (problems.errors() > 0) return;
  using Values = std::map<std::string, Value>;
  const auto pair_of = [&](const Values& values) {
    return cell_place(text_in(values), compare, varied).cell_and_pair();
  };
  std::map<CellPlace::Pair, Values> baselines;
  std::vector<Values> arms;
  for (const ExpandedRun& each : runs) {
    Values values = values_by_name(each.run);
    const auto value = values.find(compare.axis);
    if (value == values.end()) continue;
    if (plain_text(value->second) == compare.baseline)
      baselines.emplace(pair_of(values), std::move(values));
    else
      arms.push_back(std::move(values));
  }
  Compare any_seed = compare;  // runs that differ only in the seed state the same terms
  std::erase(any_seed.pair, "seed");
  std::set<std::pair<CellPlace::Pair, std::string>> judged;
  for (const Values& arm : arms) {
    const auto baseline = baselines.find(pair_of(arm));
    if (baseline == baselines.end()) continue;
    const CellPlace place = cell_place(text_in(arm), any_seed, varied);
    if (judged.emplace(place.cell_and_pair(), place.arm).second)
      warn_of_differences(baseline->second, arm, compare, table.at, problems);
  }
}

constexpr auto published_metrics =
    static_cast<double>(std::ranges::count(models::all_metrics, true, &models::Metric::published) +
                        std::ranges::count(models::all_costs, true, &models::Cost::published));

std::optional<Compare> checked(const CompareTable& table, const ExperimentConfig& config,
                               const std::vector<ExpandedRun>& runs, Diagnostics& problems) {
  const std::vector<Value> values = axis_values(table.compare.axis, runs);
  const auto value = baseline(table, values);
  const bool overridden = config.overrides.contains(table.compare.axis);
  if (!value && !overridden) report_baseline(table, values, problems);
  if (values.size() < 2 && (value || overridden))
    problems.warning(table.at, "nothing is compared: all runs have the same " + table.compare.axis);
  if (!value) return std::nullopt;
  Compare compare = table.compare;
  compare.baseline = plain_text(*value);
  compare.seeds = config.matrix.seeds;
  if (compare.families == "all")
    compare.alpha /= static_cast<double>(std::max<std::size_t>(values.size(), 2) - 1) * published_metrics;
  if (compare.seeds && compare.pair != std::vector<std::string>{"seed"})
    problems.error(table.at,
                   "runs of seed = { min, max } must be paired by their seed; write pair = [\"seed\"] or "
                   "seed = { count = n }");
  return compare;
}

}  // namespace

std::vector<ExpandedRun> expand(const ExperimentConfig& config, Diagnostics& problems) {
  const std::size_t count = product_size(config.matrix);
  if (count + config.include.size() > max_runs) {
    problems.error(config.matrix.at, "{} runs are too many; at most {} are allowed",
                   count + config.include.size(), max_runs);
    return {};
  }
  Collection runs(!config.overrides.empty(), problems);
  expand_matrix(config, runs, problems);
  expand_rows(config, runs, problems);
  return runs.finished();
}

std::vector<std::string> varied_axes(const ExperimentConfig& config, const std::vector<ExpandedRun>& runs) {
  std::vector<std::string> names;
  for (const Dimension& dimension : config.matrix.dimensions)
    for (const Axis& axis : dimension) names.push_back(axis.name);
  for (const Row& row : config.include)
    for (const auto& entry : row.settings)
      if (!contains(names, entry.first)) names.push_back(entry.first);
  std::map<std::string, std::set<Value>> values;
  for (const ExpandedRun& each : runs)
    for (const auto& [name, value] : values_by_name(each.run)) values[name].insert(value);
  std::erase_if(names, [&](const std::string& name) { return values[name].size() < 2; });
  return names;
}

std::vector<Compare> comparisons(const ExperimentConfig& config, const std::vector<ExpandedRun>& runs,
                                 const std::vector<std::string>& varied, Diagnostics& problems) {
  std::vector<Compare> found;
  if (!config.compare_given) {
    const CompareTable usual{};
    const std::vector<Value> strategies = axis_values(usual.compare.axis, runs);
    if (strategies.size() > 1 && baseline(usual, strategies)) {
      warn_of_differences(usual.compare, usual, varied, runs, problems);
      found.push_back(usual.compare);
      found.back().seeds = config.matrix.seeds;
    }
    return found;
  }
  if (config.matrix.broken || runs.empty()) return found;
  for (const CompareTable& table : config.compare)
    if (!table.compare.axis.empty())
      if (auto compare = checked(table, config, runs, problems)) {
        warn_of_differences(*compare, table, varied, runs, problems);
        found.push_back(std::move(*compare));
      }
  return found;
}

}  // namespace trainyard::experiments
