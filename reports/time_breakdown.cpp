#include "reports/time_breakdown.h"

#include <array>
#include <map>
#include <numeric>

#include "reports/number_text.h"

namespace trainyard::reports {

namespace {

struct KnownPart {
  const char* record;  // name in the records
  const char* title;
  const char* colour;
};
constexpr std::array<KnownPart, 7> parts{{{"forward", "Forward", "forward"},
                                          {"backward", "Backward", "backward"},
                                          {"optimizer", "Optimizer", "optimizer"},
                                          {"exposed_communication", "Exposed communication", "communication"},
                                          {"bubble", "Pipeline bubble", "bubble"},
                                          {"data", "Data", "data"},
                                          {"other", "Other", "other"}}};

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char character : text) {
    result += character;
    if (character == '\'') result += character;
  }
  return result + "'";
}

using PartsByRun = std::map<std::string, const db::TimeParts*>;

// Mean seconds of each part over an arm's runs; all zero where none is known.
std::vector<double> mean_parts(const Arm& arm, const PartsByRun& by_run) {
  std::vector<double> sums(parts.size(), 0);
  int count = 0;
  for (const Observation& observation : arm.runs) {
    const auto found = by_run.find(observation.run->run_key);
    if (observation.final == nullptr || found == by_run.end()) continue;
    ++count;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto seconds = found->second->seconds.find(parts[i].record);
      if (seconds != found->second->seconds.end()) sums[i] += seconds->second;
    }
  }
  for (double& sum : sums) sum /= count > 0 ? count : 1;
  return sums;
}

Stack make_stack(const Cell& cell, const Arm& arm, double reference, const PartsByRun& by_run) {
  Stack stack{cell.label, arm.value, reference, mean_parts(arm, by_run), 0};
  stack.total = std::accumulate(stack.parts.begin(), stack.parts.end(), 0.0);
  return stack;
}

// Parts that take no time anywhere (a bubble without a pipeline) are left out.
void keep_parts_with_time(Figure& figure) {
  std::vector<Stack> kept = figure.stacks;
  for (Stack& stack : kept) stack.parts.clear();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    double sum = 0;
    for (const Stack& stack : figure.stacks) sum += stack.parts[part];
    if (sum <= 0) continue;
    figure.parts.push_back({parts[part].title, parts[part].colour});
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i].parts.push_back(figure.stacks[i].parts[part]);
  }
  figure.stacks = std::move(kept);
}

Table table_of(const Figure& figure) {
  Table table;
  table.columns = {"cell", "arm"};
  for (const Part& part : figure.parts) table.columns.push_back(part.name + " s");
  table.columns.insert(table.columns.end(), {"total s", "% of baseline"});
  for (const Stack& stack : figure.stacks) {
    std::vector<std::string> row{stack.group, stack.label};
    for (const double seconds : stack.parts) row.push_back(for_table(seconds));
    row.push_back(for_table(stack.total));
    row.push_back(fixed(100 * stack.total / stack.reference, 1));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Figure make_time_breakdown(const ReportData& data, const std::vector<Cell>& cells) {
  Figure figure;
  figure.slug = "time-breakdown";
  figure.kind = FigureKind::stacks;
  figure.subject = data.experiment;
  figure.title = "Where the time of an epoch goes";
  figure.unit = "% of the baseline";
  PartsByRun by_run;
  for (const db::TimeParts& time : data.times) by_run[time.run_key] = &time;
  for (const Cell& cell : cells) {
    Stack baseline = make_stack(cell, cell.baseline, 1, by_run);
    if (!(baseline.total > 0)) continue;
    baseline.reference = baseline.total;
    figure.stacks.push_back(baseline);
    for (const Arm& arm : cell.arms) {
      Stack stack = make_stack(cell, arm, baseline.total, by_run);
      if (stack.total > 0) figure.stacks.push_back(std::move(stack));
    }
  }
  keep_parts_with_time(figure);
  if (figure.stacks.empty()) figure.missing = "no run has its time taken apart";
  figure.caption =
      "Seconds of the main thread, mean over seeds, ranks and epochs after the first; communication counts "
      "only where it is not hidden behind computation.";
  figure.sql = "SELECT * FROM time_parts WHERE experiment = " + quoted(data.experiment);
  figure.data = table_of(figure);
  return figure;
}

}  // namespace trainyard::reports
