#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/content/paper_tables.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double megabyte = 1e6;

struct Row {
  const Cell* cell;
  const Arm* arm;
  const RankCosts* costs;
};

std::vector<Row> rows_of(const Report& report) {
  std::vector<Row> rows;
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells)
      for (const Arm* arm : cell.compared())
        if (arm->rank_costs && !cell.repeated)
          for (const RankCosts& costs : *arm->rank_costs) rows.push_back({&cell, arm, &costs});
  return rows;
}

std::string rank_text(const Row& row) {
  if (row.costs->server) return "server";
  if (row.arm->ranks() == 1) return "the only one";
  return row.arm->tensor.value_or(1) > 1 ? "part" : row.arm->stages > 1 ? "stage" : "replica";
}

// "0: 4 %, 1: 93 %, 2: 3 %"
std::string staleness_text(const std::map<std::string, double>& shares) {
  std::map<int, double> ascending;
  for (const auto& [stale, share] : shares) ascending[std::stoi(stale)] = share;
  return joined(ascending, [](const auto& one) {
    return fmt::format("{}: {} %", one.first, fixed(100 * one.second, one.second < 0.01 ? 1 : 0));
  });
}

TableValue megabytes(const std::map<std::string, double>& of, const std::string& name) {
  const double* const found = value_or_null(of, name);
  return found == nullptr ? NAN : *found / megabyte;
}

}  // namespace

Table rank_costs(const Report& report) {
  Table table;
  const std::vector<Row> rows = rows_of(report);
  std::set<std::string> sent, held;
  bool stale = false;
  for (const Row& row : rows) {
    for (const auto& [name, bytes] : row.costs->sent_bytes) sent.insert(name);
    for (const auto& [name, bytes] : row.costs->held_bytes) held.insert(name);
    stale = stale || !row.costs->staleness.empty();
  }
  if (sent.empty()) return table;
  table.columns = {"Cell", "Arm", "Rank"};
  for (const std::string& name : sent) table.columns.push_back(right_column("to " + name));
  for (const std::string& name : held) table.columns.push_back(right_column(name));
  if (stale) table.columns.emplace_back("Staleness");
  table.caption =
      "Megabytes. To replicas, stages, parts or servers: what a rank sends in a training step. The other "
      "columns: the most that it held in its first step, without activations and what servers receive. Each "
      "number is that of the rank with most. Memory that replicas share counts in equal parts.";
  if (stale) table.caption += " Staleness: updates that came between, with the share of such updates.";
  for (const Row& row : rows) {
    TableRow cells{row.cell->label, row.arm->value, rank_text(row)};
    for (const std::string& name : sent) cells.push_back(megabytes(row.costs->sent_bytes, name));
    for (const std::string& name : held) cells.push_back(megabytes(row.costs->held_bytes, name));
    if (stale) cells.emplace_back(staleness_text(row.costs->staleness));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace trainyard::reports
