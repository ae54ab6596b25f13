#include <algorithm>

#include "reports/analysis/parts.h"

namespace trainyard::reports {

namespace {

std::map<std::string, double>& part_of(RankCosts& costs, const std::string& what) {
  if (what == "sent_bytes") return costs.sent_bytes;
  return what == "held_bytes" ? costs.held_bytes : costs.staleness;
}

void divide(std::map<std::string, double>& values, double by) {
  for (auto& [name, value] : values) value /= by;
}

double sum_of(const std::map<std::string, double>& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return sum;
}

std::vector<RankCosts> costs_of(const ReportData& data, const ArmRuns& runs, bool server) {
  RankCosts costs{.server = server, .sent_bytes = {}, .held_bytes = {}, .staleness = {}};
  int count = 0;
  for (const Observation& observation : runs.runs) {
    if (observation.final == nullptr || observation.final->fewer_replicas) continue;
    bool any = false;
    for (const db::RankCost& cost : data.rank_costs) {
      if (cost.run_key != observation.run->run_key || cost.server != server) continue;
      any = true;
      part_of(costs, cost.what)[cost.name] += cost.amount;
    }
    count += any ? 1 : 0;
  }
  if (count == 0) return {};
  divide(costs.sent_bytes, count);
  divide(costs.held_bytes, count);
  divide(costs.staleness, std::max(1.0, sum_of(costs.staleness)));
  return {std::move(costs)};
}

}  // namespace

void add_rank_costs(const ReportData& data, const CellRuns& runs, Cell& cell) {
  const auto add = [&](const ArmRuns& of, Arm& arm) {
    std::vector<RankCosts> all = costs_of(data, of, false);
    std::ranges::move(costs_of(data, of, true), std::back_inserter(all));
    if (!all.empty()) arm.rank_costs = std::move(all);
  };
  add(runs.baseline, cell.baseline);
  for (std::size_t i = 0; i < runs.arms.size(); ++i) add(runs.arms[i], cell.arms[i]);
}

}  // namespace trainyard::reports
