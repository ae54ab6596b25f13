#include "reports/explain/ladder.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "experiments/design/contract.h"
#include "experiments/run/strategies.h"
#include "reports/format/number_text.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

constexpr std::int64_t warmup_steps = 30;

std::int64_t integer(const db::RunSummary& run, const char* name, std::int64_t otherwise) {
  const Value* value = value_or_null(run.axes, name);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return number == nullptr ? otherwise : *number;
}

// The learning rate of the first step, with its scaling.
double learning_rate(const db::RunSummary& run) {
  const auto stated = experiments::stated_by(run.axes);
  const std::string* text = value_or_null(stated, "learning_rate");
  return text == nullptr ? NAN : std::stod(*text);
}

// Parts of a step that are computed one by one: batch normalisation takes statistics from each.
std::int64_t parts_of(const db::RunSummary& run) {
  const std::int64_t in_turn = run.stages > 1 ? integer(run, "micro_batches", 1) : 1;
  return run.replicas * in_turn * integer(run, "gradient_accumulation", 1);
}

using ByPair = std::map<std::string, double>;

// The values of a strategy, by pair. Cells leave out runs of earlier versions of the file.
ByPair values_of(const CellRuns& cell, const std::string& strategy, const Metric& metric) {
  ByPair values;
  std::vector<const ArmRuns*> arms = cell.compared();
  for (const ArmRuns& arm : cell.limits) arms.push_back(&arm);
  for (const ArmRuns* arm : arms)
    for (const Observation& one : arm->runs)
      if (arm->value == strategy && one.final != nullptr)
        if (const double value = (*one.final)[final_column(metric)];
            std::isfinite(value) && value_counts(one, metric))
          values[one.pair] = metric.kind->scale * value;
  return values;
}

Estimate difference(const ByPair& from, const ByPair& to) {
  std::vector<double> differences;
  for (const auto& [pair, value] : to)
    if (const double* before = value_or_null(from, pair)) differences.push_back(value - *before);
  return differences.empty()
             ? Estimate{.mean = NAN, .standard_error = NAN, .freedom = 0, .n = 0, .spread = NAN}
             : paired_estimate(differences);
}

double half_width(const Estimate& estimate) {
  constexpr double level = 0.95;
  if (estimate.n < 2) return NAN;
  const Interval interval = confidence_interval(estimate, level);
  return (interval.high - interval.low) / 2;
}

std::string text_of(const Estimate& estimate, bool in_points) {
  const int digits = in_points ? 2 : 4;
  if (estimate.n == 0) return "–";
  const std::string mean = signed_fixed(estimate.mean, digits);
  return estimate.n < 2 ? mean : fmt::format("{} ± {}", mean, fixed(half_width(estimate), digits));
}

// Whether the arm changes the metric, but the steps explain less than 80 % of it.
bool is_open(const Estimate& whole, const Estimate& rest) {
  constexpr double explained = 0.8;
  const bool changes = std::abs(whole.mean) > half_width(whole),
             differs = std::abs(rest.mean) > half_width(rest);
  return changes && differs && std::abs(rest.mean) > (1 - explained) * std::abs(whole.mean);
}

// A replica alone with its part of a batch, unless the baseline has that, and then as many of them at once as the arm has.
std::vector<experiments::Rung> rungs_of_times(const db::RunSummary& arm, std::int64_t batch,
                                              std::int64_t of_baseline) {
  if (arm.replicas < 2 || arm.stages * arm.tensor > 1 || batch % arm.replicas != 0) return {};
  const std::pair<std::string, Value> part{"batch", batch / arm.replicas};
  std::vector<experiments::Rung> rungs;
  if (batch / arm.replicas != of_baseline) rungs.push_back({"part-of-batch", {part}});
  for (const auto& [name, kind] : {std::pair("unconnected", "independent"), std::pair("in-step", "in-step")})
    rungs.push_back({name, {part, {"replicas", arm.replicas}, {"kind", std::string(kind)}}});
  return rungs;
}

}  // namespace

experiments::Ladder ladder_between(const db::RunSummary& baseline, const db::RunSummary& arm) {
  if (baseline.kind != "single")
    throw UserError(fmt::format("the ladder begins with one process, but the baseline {} is {}",
                                baseline.strategy, baseline.kind),
                    "compare with the strategy single");
  if (arm.kind == "foreign" || experiments::is_independent(arm.kind))
    throw UserError(
        fmt::format("the ladder needs a strategy of trainyard, but {} is {}", arm.strategy, arm.kind));
  experiments::Ladder ladder{.baseline = baseline.strategy,
                             .rungs = {},
                             .arm = arm.strategy,
                             .remedies = {},
                             .of_times = {},
                             .replicas = arm.replicas};
  std::vector<std::pair<std::string, Value>> settings;
  const auto add = [&](std::vector<experiments::Rung>& rungs, const char* name, const char* key,
                       const Value& value) {
    std::erase_if(settings, [&](const auto& one) { return one.first == key; });
    settings.emplace_back(key, value);
    rungs.push_back({name, settings});
  };
  const std::int64_t parts = parts_of(arm);
  if (parts > parts_of(baseline)) add(ladder.rungs, "in-parts", "gradient_accumulation", parts);
  const std::int64_t batch = integer(arm, "global_batch", 0), first = integer(baseline, "global_batch", 0);
  if (batch != first) add(ladder.rungs, "whole-batch", "batch", batch);
  const double rate = learning_rate(arm), before = learning_rate(baseline);
  if (rate != before) add(ladder.rungs, "scaled-rate", "learning_rate", rate);
  ladder.of_times = rungs_of_times(arm, batch, first);
  if (batch == first || first == 0) return ladder;
  const double linear = before * static_cast<double>(batch) / static_cast<double>(first);
  if (rate != linear) add(ladder.remedies, "scaled-rate-too", "learning_rate", linear);
  if (integer(arm, "warmup_steps", 0) == 0) add(ladder.remedies, "warm-up-too", "warmup_steps", warmup_steps);
  return ladder;
}

Table ladder_table(const ReportData& data, const experiments::Ladder& ladder) {
  struct Column {
    const Metric* metric = nullptr;
    std::map<std::string, ByPair> values;
  };
  std::vector<std::string> names{ladder.baseline};
  for (const experiments::Rung& rung : ladder.rungs) names.push_back(rung.name);
  const std::string last = names.back();
  names.push_back(ladder.arm);
  for (const experiments::Rung& rung : ladder.remedies) names.push_back(rung.name);
  const std::vector<CellRuns> cells = make_cells(data, data.plan.compare.front());
  Table table;
  table.columns = {"step"};
  std::vector<Column> columns;
  for (const char* name : {"validation-accuracy", "validation-loss"}) {
    Column column{&find_metric(name), {}};
    for (const std::string& strategy : names)
      column.values[strategy] = values_of(cells.front(), strategy, *column.metric);
    if (column.values[ladder.baseline].empty()) continue;
    table.columns.push_back(
        right_column(column.metric->title + (column.metric->kind->scale > 1 ? ", pp" : "")));
    columns.push_back(std::move(column));
  }
  const auto add = [&](const std::string& title, const std::string& from, const std::string& to) {
    TableRow& row = table.rows.emplace_back(TableRow{title});
    for (const Column& column : columns)
      row.emplace_back(
          text_of(difference(column.values.at(from), column.values.at(to)), column.metric->kind->scale > 1));
  };
  std::string before = ladder.baseline;
  for (const experiments::Rung& rung : ladder.rungs) {
    const auto& [key, value] = rung.settings.back();
    add(fmt::format("{} ({} = {})", rung.name, key, to_text(value)), before, rung.name);
    before = rung.name;
  }
  add("all steps together", ladder.baseline, last);
  add(fmt::format("{} against {}", ladder.arm, ladder.baseline), ladder.baseline, ladder.arm);
  add("not explained", last, ladder.arm);
  before = ladder.arm;
  for (const experiments::Rung& rung : ladder.remedies) {
    const auto& [key, value] = rung.settings.back();
    add(fmt::format("then {} ({} = {})", rung.name, key, to_text(value)), before, rung.name);
    before = rung.name;
  }
  for (const Column& column : columns) {
    const auto& values = column.values;
    const Estimate whole = difference(values.at(ladder.baseline), values.at(ladder.arm));
    if (is_open(whole, difference(values.at(last), values.at(ladder.arm))))
      table.notes.push_back(fmt::format("not explained: the steps make less than 80 % of the change of {}",
                                        column.metric->title));
    table.notes.push_back(fmt::format("{}: {} pairs; mean change with half of its 95 % t interval",
                                      column.metric->title, whole.n));
  }
  return table;
}

Table ladder_of_times(const ReportData& data, const experiments::Ladder& ladder) {
  Table table;
  if (ladder.of_times.empty()) return table;
  table.columns = {"step"};
  const std::vector<CellRuns> cells = make_cells(data, data.plan.compare.front());
  struct Step {
    std::string title, strategy;
  };
  std::vector<Step> steps{{fmt::format("{} / {}", ladder.baseline, ladder.replicas), ladder.baseline}};
  for (const experiments::Rung& rung : ladder.of_times) {
    const auto& [key, value] = rung.settings.back();
    steps.push_back({fmt::format("{} ({} = {})", rung.name, key, to_text(value)), rung.name});
  }
  steps.push_back({ladder.arm, ladder.arm});
  for (const Step& step : steps) table.rows.push_back({step.title});
  table.rows.push_back({fmt::format("{} against {} / {}", ladder.arm, ladder.baseline, ladder.replicas)});
  for (const char* name : {"train-seconds", "train-processor-seconds"}) {
    const Metric& metric = find_metric(name);
    std::vector<ByPair> values;
    for (const Step& step : steps) {
      ByPair& of_step = values.emplace_back(values_of(cells.front(), step.strategy, metric));
      for (auto& [pair, seconds] : of_step)
        if (step.strategy != ladder.arm) seconds /= static_cast<double>(ladder.replicas);
    }
    table.columns.push_back(right_column(metric.title + ", s"));
    ByPair nothing;
    for (const auto& [pair, seconds] : values.front()) nothing[pair] = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::string text = text_of(difference(i == 0 ? nothing : values[i - 1], values[i]), false);
      if (i == 0 && text.starts_with('+')) text.erase(0, 1);  // no change
      table.rows[i].push_back(text);
    }
    const Estimate whole = difference(values.front(), values.back());
    table.rows.back().emplace_back(text_of(whole, false));
    table.notes.push_back(fmt::format(
        "{}: {} pairs; mean, then mean changes, with half of their 95 % t intervals", metric.title, whole.n));
  }
  return table;
}

}  // namespace trainyard::reports
