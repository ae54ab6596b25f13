#include "reports/content/scaling.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/content/curves.h"
#include "reports/content/panels.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr const char* limit_name = "independent runs at once";
constexpr const char* epoch_times =
    "median epoch time of the baseline divided by that of the arm, of the slowest rank";

// The arms with a speed-up.
std::vector<const Arm*> scaled_arms(const Cell& cell) {
  std::vector<const Arm*> arms;
  for (const Arm& arm : cell.arms)
    if (arm.speed_up) arms.push_back(&arm);
  return arms;
}

Point times(Point point, double factor) {
  point.mean *= factor;
  point.low *= factor;
  point.high *= factor;
  return point;
}

// The line of an arm starts at the baseline: its devices, speed-up 1.
Series series_of(const Arm& arm, double baseline_devices, const Palette& palette, bool efficiency) {
  Series series{key_of(arm), arm.value, arm.value, palette.at(arm.value), 0, {}, std::nullopt};
  const double devices = arm.speed_up->x;
  if (devices > baseline_devices)
    series.points.push_back({baseline_devices, efficiency ? 100.0 : 1.0, NAN, NAN, arm.speed_up->n});
  series.points.push_back(times(*arm.speed_up, efficiency ? 100 * baseline_devices / devices : 1));
  return series;
}

std::vector<Guide> guides_of(const std::vector<MachineLimit>& limits, double first, double last,
                             bool efficiency) {
  std::vector<Guide> guides;
  if (last > first)
    guides.push_back(
        {"ideal", "ideal", {{first, efficiency ? 100 : 1}, {last, efficiency ? 100 : last / first}}});
  Guide machine{limit_name, "limit", {}};
  if (!limits.empty()) machine.points.emplace_back(1, efficiency ? 100 : 1);
  for (const MachineLimit& limit : limits)
    machine.points.emplace_back(limit.runs, limit.speed_up * (efficiency ? 100.0 / limit.runs : 1));
  if (!machine.points.empty()) guides.push_back(std::move(machine));
  return guides;
}

std::string pairs_text(const std::vector<const Arm*>& arms) {
  const bool several = std::ranges::any_of(arms, [](const Arm* arm) { return arm->speed_up->n > 1; });
  return several ? ", geometric mean over pairs with 95 % confidence interval."
                 : ", one pair, so no interval is shown.";
}

std::string caption_of(const std::vector<const Arm*>& arms, const std::vector<MachineLimit>& limits) {
  std::string text = std::string("Speed-up: ") + epoch_times + pairs_text(arms);
  if (limits.empty())
    text += " The machine's limit was not measured. Add a strategy of kind independent to measure it.";
  for (const MachineLimit& limit : limits) text += " " + limit_text(limit) + ".";
  return text;
}

Table table_of(const std::vector<const Arm*>& arms, const std::vector<MachineLimit>& limits,
               double baseline_devices) {
  Table table;
  table.columns = {"arm", "devices", "speed-up", "low 95 %", "high 95 %", "efficiency %", "pairs"};
  for (const Arm* arm : arms) {
    const Point& point = *arm->speed_up;
    table.rows.push_back({arm->value, arm->devices, point.mean, point.low, point.high,
                          100 * point.mean * baseline_devices / point.x, std::int64_t{point.n}});
  }
  for (const MachineLimit& limit : limits)
    table.rows.push_back({limit_name, std::int64_t{limit.runs}, limit.speed_up, limit.low, limit.high,
                          100 * limit.speed_up / limit.runs, std::int64_t{limit.pairs}});
  return table;
}

std::string sql_of(const std::vector<const Cell*>& cells) {
  const std::string keys = joined(
      cells, [](const Cell* cell) { return joined(run_keys(*cell), {}, "', '"); }, "', '");
  return fmt::format(
      "SELECT DISTINCT model, strategy, seed, epoch_train_seconds\nFROM final_metrics WHERE times_count AND "
      "run_key IN ('{}')\nORDER BY model, strategy, seed",
      keys);
}

// Numbers of devices of an arm or the baseline.
std::size_t device_counts(const Cell& cell, const std::vector<const Arm*>& arms) {
  if (arms.empty()) return 0;
  std::set<std::int64_t> counts{cell.baseline.devices};
  for (const Arm* arm : arms) counts.insert(arm->devices);
  return counts.size();
}

// The bars of one cell: its arms, and the machine's limit for their devices if it is known.
struct ScaledCell {
  const Cell* cell = nullptr;
  std::vector<const Arm*> arms;
  std::vector<MachineLimit> limits;
  double devices = 1;  // of the baseline
};

std::vector<ScaledCell> scaled_cells(const Report& report) {
  std::vector<ScaledCell> scaled;
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells) {
      ScaledCell one{&cell, scaled_arms(cell), cell.machine_limits,
                     static_cast<double>(cell.baseline.devices)};
      if (cell.repeated || one.arms.empty()) continue;
      std::erase_if(one.limits, [&](const MachineLimit& limit) {
        return std::ranges::find(one.arms, limit.runs, &Arm::devices) == one.arms.end();
      });
      scaled.push_back(std::move(one));
    }
  return scaled;
}

Bars bars_of(const std::vector<ScaledCell>& cells, const Palette& palette, bool efficiency) {
  Bars bars;
  for (const ScaledCell& cell : cells) {
    for (const Arm* arm : cell.arms) {
      const std::string& name = arm->value;
      const Point value = times(*arm->speed_up, efficiency ? 100 * cell.devices / arm->speed_up->x : 1);
      bars.series.push_back({key_of(*arm), name, name, palette.at(name), 0, {}, value});
    }
    for (const MachineLimit& limit : cell.limits) {
      const Point value =
          times({static_cast<double>(limit.runs), limit.speed_up, limit.low, limit.high, limit.pairs},
                efficiency ? 100.0 / limit.runs : 1);
      bars.series.push_back({limit_name, limit_name, "limit", "grey", 0, {}, value});
    }
    bars.groups.push_back({cell.cell->label, cell.arms.size() + cell.limits.size()});
  }
  return bars;
}

// The ideal of each ratio of devices.
std::vector<Guide> ideals_of(const std::vector<ScaledCell>& cells, bool efficiency) {
  std::set<double> ratios;
  for (const ScaledCell& cell : cells)
    for (const Arm* arm : cell.arms) ratios.insert(arm->speed_up->x / cell.devices);
  std::vector<Guide> guides;
  if (efficiency) return {{"ideal", "ideal", {{0, 100}}}};
  for (const double ratio : ratios)
    if (ratio > 1)
      guides.push_back(
          {fmt::format("ideal on {} × the devices", plain_number(ratio)), "ideal", {{0, ratio}}});
  return guides;
}

Table table_of(const std::vector<ScaledCell>& cells) {
  Table all;
  for (const ScaledCell& cell : cells) {
    const Table table = table_of(cell.arms, cell.limits, cell.devices);
    if (all.columns.empty()) {
      all.columns = table.columns;
      all.columns.insert(all.columns.begin(), "cell");
    }
    for (TableRow row : table.rows) {
      row.insert(row.begin(), cell.cell->label);
      all.rows.push_back(std::move(row));
    }
  }
  return all;
}

std::vector<int> pairs_of(const std::vector<ScaledCell>& cells) {
  std::vector<int> counts;
  for (const ScaledCell& cell : cells)
    for (const Arm* arm : cell.arms) counts.push_back(arm->speed_up->n);
  return counts;
}

std::string limits_text(const std::vector<ScaledCell>& cells) {
  const bool some = std::ranges::any_of(cells, [](const ScaledCell& cell) { return !cell.limits.empty(); });
  return some ? " Grey: independent runs at once, the limit of the machine."
              : " The machine's limit was not measured. Add a strategy of kind independent to measure it.";
}

}  // namespace

std::string limit_text(const MachineLimit& limit) {
  const std::string interval = std::isnan(limit.low) ? "no interval"
                                                     : fmt::format("95 % interval {} to {}",
                                                                   fixed(limit.low, 2), fixed(limit.high, 2));
  return fmt::format("{} independent runs at once: speed-up {}, {}", limit.runs, fixed(limit.speed_up, 2),
                     interval);
}

std::string uncounted_text(const Report& report, const std::vector<const Cell*>& cells) {
  std::set<std::string> drawn;
  for (const Cell* cell : cells)
    for (std::string& key : run_keys(*cell)) drawn.insert(std::move(key));
  int runs = 0, epochs = 0;
  for (const RunRow& run : report.runs) {
    if (!run.has_result || drawn.erase(run.key) == 0) continue;
    if (run.times_count)
      epochs += run.disturbed_epochs;
    else
      ++runs;
  }
  std::string text;
  if (runs > 0) text += fmt::format(" Left out: {} whose times do not count.", counted(runs, "run"));
  if (epochs > 0)
    text += fmt::format(" Left out: {} that other processes disturbed.", counted(epochs, "epoch"));
  return text;
}

std::vector<Figure> make_scaling_of_all(const Report& report, const Palette& palette) {
  const std::vector<ScaledCell> scaled = scaled_cells(report);
  if (std::ranges::none_of(scaled,
                           [](const ScaledCell& cell) { return device_counts(*cell.cell, cell.arms) > 1; }))
    return {};
  std::vector<const Cell*> drawn;
  for (const ScaledCell& cell : scaled) drawn.push_back(cell.cell);
  std::vector<Figure> figures;
  for (const bool efficiency : {false, true}) {
    Figure figure;
    figure.slug = efficiency ? "efficiency" : "speed-up";
    figure.title = efficiency ? "Efficiency" : "Speed-up";
    figure.unit = efficiency ? "%" : "×";
    Bars bars = bars_of(scaled, palette, efficiency);
    bars.guides = ideals_of(scaled, efficiency);
    figure.picture = std::move(bars);
    figure.intervals = intervals_text(pairs_of(scaled), "A vertical line");
    figure.caption =
        figure.intervals + " " +
        (efficiency ? "Efficiency: speed-up in percent of the ideal one, which is the ratio of devices."
                    : std::string("Speed-up: ") + epoch_times + ", as geometric mean over pairs.") +
        limits_text(scaled) + uncounted_text(report, drawn);
    figure.sql = sql_of(drawn);
    figure.data = table_of(scaled);
    figure.own_legend = true;
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<Figure> make_scaling(const Cell& cell, const Palette& palette) {
  std::vector<Figure> figures;
  const std::vector<const Arm*> arms = scaled_arms(cell);
  if (device_counts(cell, arms) < 3) return figures;
  const auto first = static_cast<double>(cell.baseline.devices);
  double last = first;
  for (const Arm* arm : arms) last = std::max(last, arm->speed_up->x);
  const std::vector<MachineLimit>& limits = cell.machine_limits;
  for (const bool efficiency : {false, true}) {
    Figure figure;
    figure.slug = cell.slug + (efficiency ? "-efficiency" : "-speed-up");
    figure.subject = cell.label;
    figure.title = efficiency ? "Efficiency over devices" : "Speed-up over devices";
    figure.unit = efficiency ? "%" : "×";
    Lines lines;
    lines.x.title = "devices";
    lines.x.integers = true;
    lines.y.from_zero = true;
    lines.y.least = 0;
    lines.markers = true;
    for (const Arm* arm : arms) lines.series.push_back(series_of(*arm, first, palette, efficiency));
    lines.guides = guides_of(limits, first, last, efficiency);
    figure.picture = std::move(lines);
    figure.caption = efficiency ? "Speed-up in percent of the ideal speed-up" + pairs_text(arms)
                                : caption_of(arms, limits);
    figure.sql = sql_of({&cell});
    figure.data = table_of(arms, limits, first);
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace trainyard::reports
