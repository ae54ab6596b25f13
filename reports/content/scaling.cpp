#include "reports/content/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "reports/content/curves.h"
#include "reports/content/panels.h"
#include "reports/format/number_text.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

constexpr const char* limit_name = "independent runs at once";
constexpr const char* epoch_times =
    "median epoch time of the baseline divided by that of the arm, of the slowest rank";

struct ScaledArm {
  const Arm* arm = nullptr;
  int devices = 1;
  bool shares_devices = false;
  Point speed_up;  // geometric mean over pairs
};

double seconds_of(const Observation& observation) {
  // Times of runs that shared the host do not count. Times of ranks that share a device do, with a note in
  // the caption.
  const bool alone = observation.launched == nullptr || observation.launched->host_exclusive;
  return observation.final != nullptr && alone ? (*observation.final)["epoch_train_seconds"] : std::nan("");
}

std::map<std::string, double> seconds_by_pair(const Arm& arm) {
  std::map<std::string, double> seconds;
  for (const Observation& observation : arm.runs) {
    if (const double value = seconds_of(observation); value > 0) seconds[observation.pair] = value;
  }
  return seconds;
}

// ln(baseline time / arm time) of each pair.
std::vector<double> log_ratios(const Arm& baseline, const Arm& arm) {
  const std::map<std::string, double> before = seconds_by_pair(baseline);
  std::vector<double> logarithms;
  for (const auto& [pair, seconds] : seconds_by_pair(arm)) {
    const auto partner = before.find(pair);
    if (partner != before.end()) logarithms.push_back(std::log(partner->second / seconds));
  }
  return logarithms;
}

ScaledArm scaled(const Arm& baseline, const Arm& arm) {
  ScaledArm result;
  result.arm = &arm;
  for (const Observation& observation : arm.runs) {
    result.devices = std::max(result.devices, devices_of(observation));
    result.shares_devices =
        result.shares_devices || (observation.launched != nullptr && observation.launched->devices_shared);
  }
  const Point mean = mean_point(result.devices, log_ratios(baseline, arm));
  result.speed_up = {mean.x, std::exp(mean.mean), std::exp(mean.low), std::exp(mean.high), mean.n};
  return result;
}

std::vector<ScaledArm> scaled_arms(const Cell& cell) {
  std::vector<ScaledArm> arms;
  for (const Arm& arm : cell.arms) {
    ScaledArm one = scaled(cell.baseline, arm);
    if (one.speed_up.n > 0) arms.push_back(one);
  }
  return arms;
}

// The line of an arm starts at the baseline: its devices, speed-up 1.
Series series_of(const ScaledArm& scaled, double baseline_devices, const Palette& palette, bool efficiency) {
  const std::string& name = scaled.arm->value;
  Series series{key_of(*scaled.arm), name, name, palette.at(name), 0, {}, std::nullopt};
  const double one = efficiency ? 100 : 1;
  if (scaled.devices > baseline_devices)
    series.points.push_back({baseline_devices, one, NAN, NAN, scaled.speed_up.n});
  Point point = scaled.speed_up;
  const double factor = efficiency ? 100 * baseline_devices / scaled.devices : 1;
  point.mean *= factor;
  point.low *= factor;
  point.high *= factor;
  series.points.push_back(point);
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

std::string pairs_text(const std::vector<ScaledArm>& arms) {
  const bool several = std::ranges::any_of(arms, [](const ScaledArm& arm) { return arm.speed_up.n > 1; });
  return several ? ", geometric mean over pairs with 95 % confidence interval."
                 : ", one pair, so no interval is shown.";
}

std::string caption_of(const std::vector<ScaledArm>& arms, const std::vector<MachineLimit>& limits) {
  std::string text = std::string("Speed-up: ") + epoch_times + pairs_text(arms);
  if (limits.empty())
    text += " The machine's limit was not measured. Add a strategy of kind independent to measure it.";
  for (const MachineLimit& limit : limits)
    text += fmt::format(" {} independent runs at once reach a total speed-up of {}.", limit.runs,
                        fixed(limit.speed_up, 2));
  for (const ScaledArm& arm : arms) {
    if (arm.shares_devices)
      text += " Ranks of " + arm.arm->value + " shared devices, so it has no time verdict.";
  }
  return text;
}

Table table_of(const std::vector<ScaledArm>& arms, const std::vector<MachineLimit>& limits,
               double baseline_devices) {
  Table table;
  table.columns = {"arm", "devices", "speed-up", "low 95 %", "high 95 %", "efficiency %", "pairs"};
  for (const ScaledArm& arm : arms) {
    const Point& point = arm.speed_up;
    table.rows.push_back({arm.arm->value, std::int64_t{arm.devices}, point.mean, point.low, point.high,
                          100 * point.mean * baseline_devices / arm.devices, std::int64_t{point.n}});
  }
  for (const MachineLimit& limit : limits)
    table.rows.push_back({limit_name, std::int64_t{limit.runs}, limit.speed_up, limit.low, limit.high,
                          100 * limit.speed_up / limit.runs, std::int64_t{limit.pairs}});
  return table;
}

std::string sql_of(const std::vector<Cell>& cells) {
  std::string keys;
  const auto add = [&](const Arm& arm) {
    for (const Observation& observation : arm.runs)
      keys += fmt::format("{}{}'", keys.empty() ? "'" : ", '", observation.run->run_key);
  };
  for (const Cell& cell : cells) {
    add(cell.baseline);
    std::ranges::for_each(cell.arms, add);
    std::ranges::for_each(cell.limits, add);
  }
  return "SELECT DISTINCT model, strategy, seed, epoch_train_seconds\nFROM final_metrics WHERE run_key IN (" +
         keys + ")\nORDER BY model, strategy, seed";
}

// Whether two runs are equal in all values except those in `free`.
bool is_like(const std::map<std::string, Value>& one, const std::map<std::string, Value>& other,
             const std::set<std::string>& free) {
  const auto same_in = [&](const auto& these, const auto& those) {
    return std::ranges::all_of(these, [&](const auto& axis) {
      const auto found = those.find(axis.first);
      return free.count(axis.first) != 0 || (found != those.end() && found->second == axis.second);
    });
  };
  return same_in(one, other) && same_in(other, one);
}

std::map<int, MachineLimit> packed_limits(const ReportData& data, const Cell& cell) {
  std::vector<double> alone;
  for (const auto& [pair, seconds] : seconds_by_pair(cell.baseline)) alone.push_back(seconds);
  std::map<int, std::vector<double>> together;  // epoch seconds by number of runs at once
  if (alone.empty()) return {};
  const Observation& first = cell.baseline.runs.front();
  for (const db::PackedRun& packed : data.packed) {
    if (packed.at_once > 1 && packed.circumstances_hash == first.run->circumstances_hash &&
        is_like(packed.axes, first.run->axes, {"seed", "epochs"}))
      together[packed.at_once].push_back(packed.epoch_train_seconds);
  }
  std::map<int, MachineLimit> limits;
  for (auto& [runs, seconds] : together) limits[runs] = {runs, runs * median(alone) / median(seconds)};
  return limits;
}

// No pairs if the runs do other work than the baseline, ran in other circumstances or shared a device.
MachineLimit independent_limit(const Arm& baseline, const Arm& arm) {
  MachineLimit limit;
  if (baseline.runs.empty()) return limit;
  const db::RunSummary& first = *baseline.runs.front().run;
  for (const Observation& observation : arm.runs) {
    const db::RunSummary& run = *observation.run;
    const bool shared = observation.launched != nullptr && observation.launched->devices_shared;
    const bool planned = run.circumstances_hash.empty();
    if (shared || !is_like(run.axes, first.axes, {"seed", "epochs", "strategy", "replicas"})) return limit;
    if (!planned && run.circumstances_hash != first.circumstances_hash) return limit;
    limit.runs = static_cast<int>(run.replicas);
  }
  const Point ratio = mean_point(limit.runs, log_ratios(baseline, arm));
  limit.speed_up = limit.runs * std::exp(ratio.mean);
  limit.low = limit.runs * std::exp(ratio.low);
  limit.high = limit.runs * std::exp(ratio.high);
  limit.pairs = ratio.n;
  return limit;
}

}  // namespace

int devices_of(const Observation& observation) {
  const auto ranks = static_cast<int>(observation.run->replicas * observation.run->stages);
  return observation.launched != nullptr && observation.launched->devices > 0
             ? static_cast<int>(observation.launched->devices)
             : ranks;
}

std::vector<MachineLimit> machine_limits(const ReportData& data, const Cell& cell) {
  std::map<int, MachineLimit> limits = packed_limits(data, cell);
  for (const Arm& arm : cell.limits) {
    const MachineLimit limit = independent_limit(cell.baseline, arm);
    if (limit.pairs > 0) limits[limit.runs] = limit;
  }
  std::vector<MachineLimit> found;
  found.reserve(limits.size());
  for (const auto& [runs, limit] : limits) found.push_back(limit);
  return found;
}

namespace {

// Numbers of devices of an arm or the baseline.
std::size_t device_counts(const Cell& cell, const std::vector<ScaledArm>& arms) {
  if (arms.empty()) return 0;
  std::set<int> counts{devices_of(cell.baseline.runs.front())};
  for (const ScaledArm& arm : arms) counts.insert(arm.devices);
  return counts.size();
}

// The bars of one cell: its arms, and the machine's limit for their devices if it is known.
struct ScaledCell {
  const Cell* cell = nullptr;
  std::vector<ScaledArm> arms;
  std::vector<MachineLimit> limits;
  double devices = 1;  // of the baseline
};

std::vector<ScaledCell> scaled_cells(const ReportData& data, const std::vector<Cell>& cells) {
  std::vector<ScaledCell> scaled;
  for (const Cell& cell : cells) {
    ScaledCell one{&cell, scaled_arms(cell), {}, 1};
    if (one.arms.empty()) continue;
    one.limits = machine_limits(data, cell);
    one.devices = devices_of(cell.baseline.runs.front());
    std::erase_if(one.limits, [&](const MachineLimit& limit) {
      return std::ranges::find(one.arms, limit.runs, &ScaledArm::devices) == one.arms.end();
    });
    scaled.push_back(std::move(one));
  }
  return scaled;
}

Point times(Point point, double factor) {
  point.mean *= factor;
  point.low *= factor;
  point.high *= factor;
  return point;
}

Bars bars_of(const std::vector<ScaledCell>& cells, const Palette& palette, bool efficiency) {
  Bars bars;
  for (const ScaledCell& cell : cells) {
    for (const ScaledArm& arm : cell.arms) {
      const std::string& name = arm.arm->value;
      const Point value = times(arm.speed_up, efficiency ? 100 * cell.devices / arm.devices : 1);
      bars.series.push_back({key_of(*arm.arm), name, name, palette.at(name), 0, {}, value});
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
    for (const ScaledArm& arm : cell.arms) ratios.insert(arm.devices / cell.devices);
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
    for (const ScaledArm& arm : cell.arms) counts.push_back(arm.speed_up.n);
  return counts;
}

std::string limits_text(const std::vector<ScaledCell>& cells) {
  const bool some = std::ranges::any_of(cells, [](const ScaledCell& cell) { return !cell.limits.empty(); });
  std::string text =
      some ? " Grey: independent runs at once, the limit of the machine."
           : " The machine's limit was not measured. Add a strategy of kind independent to measure it.";
  std::set<std::string> sharing;
  for (const ScaledCell& cell : cells)
    for (const ScaledArm& arm : cell.arms)
      if (arm.shares_devices) sharing.insert(arm.arm->value);
  for (const std::string& arm : sharing)
    text += " Ranks of " + arm + " shared devices, so it has no time verdict.";
  return text;
}

}  // namespace

std::vector<Figure> make_scaling_of_all(const ReportData& data, const std::vector<Cell>& cells,
                                        const Palette& palette) {
  const std::vector<ScaledCell> scaled = scaled_cells(data, cells);
  if (std::ranges::none_of(scaled,
                           [](const ScaledCell& cell) { return device_counts(*cell.cell, cell.arms) > 1; }))
    return {};
  std::vector<Cell> drawn;
  for (const ScaledCell& cell : scaled) drawn.push_back(*cell.cell);
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
        limits_text(scaled);
    figure.sql = sql_of(drawn);
    figure.data = table_of(scaled);
    figure.own_legend = true;
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<Figure> make_scaling(const ReportData& data, const Cell& cell, const Palette& palette) {
  std::vector<Figure> figures;
  const std::vector<ScaledArm> arms = scaled_arms(cell);
  if (device_counts(cell, arms) < 3) return figures;
  const double first = devices_of(cell.baseline.runs.front());
  double last = first;
  for (const ScaledArm& arm : arms) last = std::max<double>(last, arm.devices);
  const std::vector<MachineLimit> limits = machine_limits(data, cell);
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
    for (const ScaledArm& arm : arms) lines.series.push_back(series_of(arm, first, palette, efficiency));
    lines.guides = guides_of(limits, first, last, efficiency);
    figure.picture = std::move(lines);
    figure.caption = efficiency ? "Speed-up in percent of the ideal speed-up" + pairs_text(arms)
                                : caption_of(arms, limits);
    figure.sql = sql_of({cell});
    figure.data = table_of(arms, limits, first);
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace trainyard::reports
