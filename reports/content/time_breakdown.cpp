#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "reports/content/figures_of_all_models.h"
#include "reports/content/scaling.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

struct KnownPart {
  const char* record;  // name in the records
  const char* title;
  const char* colour;
  const char* why;  // text for time beyond the share of the baseline's time
};
constexpr std::array<KnownPart, 7> parts{
    {{"forward", "Forward", "forward", "the forward pass (smaller batches use a device less efficiently)"},
     {"backward", "Backward", "backward",
      "the backward pass (smaller batches use a device less efficiently)"},
     {"optimizer", "Optimizer", "optimizer", "the optimizer"},
     {"exposed_communication", "Exposed communication", "communication",
      "waiting for other ranks' gradients and activations"},
     {"bubble", "Pipeline bubble", "bubble", "waiting for a neighbouring stage"},
     {"data", "Data", "data", "preparing batches"},
     {"other", "Other", "other", "everything else"}}};

using PartsByRun = std::map<std::string, const db::TimeParts*>;

// Mean seconds of each part over an arm's runs; zero if nothing is known.
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

struct Excess {
  double seconds = 0;
  const char* why = "";
};

// Time of an arm beyond the baseline's time divided by `devices`, by part, largest first.
std::vector<Excess> excesses(const Stack& baseline, const Stack& arm, double devices, std::int64_t stages) {
  std::vector<Excess> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double seconds = arm.parts[i] - baseline.parts[i] / devices;
    const bool without_stages = stages == 1 && std::string_view(parts[i].colour) == "communication";
    if (seconds > 0)
      found.push_back({seconds, without_stages ? "waiting for other ranks' gradients" : parts[i].why});
  }
  std::ranges::sort(found, std::ranges::greater{}, &Excess::seconds);
  return found;
}

// The largest parts of the excess: "60 % waiting for other ranks' gradients, 25 % the optimizer".
std::string reasons(const std::vector<Excess>& found) {
  double all = 0;
  for (const Excess& excess : found) all += excess.seconds;
  std::string text;
  double said = 0;
  for (const Excess& excess : found) {
    if (said >= 0.8 * all || excess.seconds < 0.05 * all) break;
    text +=
        fmt::format("{}{} % {}", text.empty() ? "" : ", ", fixed(100 * excess.seconds / all, 0), excess.why);
    said += excess.seconds;
  }
  return text;
}

// Limit of the machine, whose devices share memory and power: ", 2 independent runs at once: 1.83".
std::string limit_text(const std::vector<MachineLimit>& limits, int devices) {
  const auto found = std::ranges::find(limits, devices, &MachineLimit::runs);
  return found == limits.end()
             ? ""
             : fmt::format(", {} independent runs at once: {}", devices, fixed(found->speed_up, 2));
}

// Why an arm is slower than the ideal for its devices, in a few sentences.
std::string why_slower(const Cell& cell, const Arm& arm, const Stack& baseline, const Stack& stack,
                       const std::vector<MachineLimit>& limits) {
  const Observation& first = arm.runs.front();
  const int devices = devices_of(first);
  const double more = static_cast<double>(devices) / devices_of(cell.baseline.runs.front());
  const double ideal = baseline.total / more;
  std::string text = cell.label + ", " + arm.value + ": an epoch takes " + for_table(stack.total, 3) +
                     " s on " + std::to_string(devices) + (devices == 1 ? " device" : " devices") +
                     ". An epoch of " + cell.baseline.value + " takes " +
                     fixed(baseline.total / stack.total, 2) + " times as long (ideal: " + fixed(more, 2) +
                     limit_text(limits, devices) + ").";
  if (first.launched != nullptr && first.launched->devices_shared)
    text += fmt::format(" Its {} ranks share the devices.", first.run->replicas * first.run->stages);
  if (stack.total <= 1.02 * ideal) return text + " No time is lost.";
  return fmt::format("{} Lost time: {}.", text, reasons(excesses(baseline, stack, more, first.run->stages)));
}

// Leaves out parts that take no time in any stack, for example the bubble without a pipeline.
void keep_parts_with_time(Stacks& figure) {
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

Table breakdown_table(const Stacks& figure) {
  Table table;
  table.columns = {"cell", "arm"};
  for (const Part& part : figure.parts) table.columns.emplace_back(part.name + " s");
  table.columns.insert(table.columns.end(), {"total s", "% of baseline"});
  for (const Stack& stack : figure.stacks) {
    TableRow row{stack.group, stack.label};
    for (const double seconds : stack.parts) row.emplace_back(seconds);
    row.emplace_back(stack.total);
    row.emplace_back(100 * stack.total / stack.reference);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Figure make_time_breakdown(const ReportData& data, const std::vector<Cell>& cells) {
  Figure figure;
  figure.slug = "time-breakdown";
  figure.subject = data.experiment;
  figure.title = "Where the time of an epoch goes";
  figure.unit = "% of the baseline";
  Stacks picture;
  PartsByRun by_run;
  for (const db::TimeParts& time : data.times) by_run[time.run_key] = &time;
  for (const Cell& cell : cells) {
    Stack baseline = make_stack(cell, cell.baseline, 1, by_run);
    if (!(baseline.total > 0)) continue;
    baseline.reference = baseline.total;
    picture.stacks.push_back(baseline);
    const std::vector<MachineLimit> limits = machine_limits(data, cell);
    for (const Arm& arm : cell.arms) {
      Stack stack = make_stack(cell, arm, baseline.total, by_run);
      if (!(stack.total > 0)) continue;
      figure.remarks.push_back(why_slower(cell, arm, baseline, stack, limits));
      picture.stacks.push_back(std::move(stack));
    }
  }
  keep_parts_with_time(picture);
  if (picture.stacks.empty()) figure.missing = "no run recorded the parts of its time";
  figure.caption =
      "Seconds of the main thread, mean over seeds, ranks and timed epochs. Communication that is "
      "hidden behind computation is not counted.";
  figure.sql = "SELECT * FROM time_parts WHERE experiment IN " + experiments_in_sql(data);
  figure.data = breakdown_table(picture);
  figure.picture = std::move(picture);
  return figure;
}

}  // namespace trainyard::reports
