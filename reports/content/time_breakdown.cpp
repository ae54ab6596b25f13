#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"
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
    {{"forward", "Forward", "forward", "the forward pass"},
     {"backward", "Backward", "backward", "the backward pass"},
     {"optimizer", "Optimizer", "optimizer", "the optimizer"},
     {"exposed_communication", "Exposed communication", "communication",
      "waiting for other ranks' gradients and activations"},
     {"bubble", "Pipeline bubble", "bubble", "waiting for a neighbouring stage"},
     {"data", "Data", "data", "preparing batches"},
     {"other", "Other", "other", "everything else"}}};

Stack make_stack(const Cell& cell, const Arm& arm, double reference) {
  Stack stack{cell.label, arm.value, reference, {}, 0};
  for (const KnownPart& part : parts) {
    const auto seconds = arm.time_parts.find(part.record);
    stack.parts.push_back(seconds == arm.time_parts.end() ? 0 : seconds->second);
  }
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

// Limit of the machine, whose devices share memory and power: "; 2 independent runs at once: 1.83, 1.79 to 1.87".
std::string limit_of(const std::vector<MachineLimit>& limits, std::int64_t devices) {
  const auto found = std::ranges::find(limits, devices, &MachineLimit::runs);
  return found == limits.end() ? "" : "; " + limit_text(*found);
}

// Why an arm is slower than the ideal for its devices, in a few sentences.
std::string why_slower(const Cell& cell, const Arm& arm, const Stack& baseline, const Stack& stack) {
  const std::int64_t devices = arm.devices;
  const double more = static_cast<double>(devices) / static_cast<double>(cell.baseline.devices);
  const double ideal = baseline.total / more;
  const std::string text = fmt::format(
      "{}, {}: {} s per epoch on {}, speed-up {} (ideal: {}{}).", cell.label, arm.value,
      for_table(stack.total, 3), counted(static_cast<std::size_t>(devices), "device"),
      fixed(baseline.total / stack.total, 2), fixed(more, 2), limit_of(cell.machine_limits, devices));
  if (stack.total <= 1.02 * ideal) return text + " No time is lost.";
  return fmt::format("{} Lost time: {}.", text, reasons(excesses(baseline, stack, more, arm.stages)));
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

constexpr std::size_t most_timeline_rows = 8;  // of an arm with several replicas

// The place of a recorded part in `used`. Messages between stages are communication, as in the breakdown.
std::size_t place_of(std::string_view record, std::vector<Part>& used) {
  if (record == "transfer") record = "exposed_communication";
  const auto known =
      std::ranges::find_if(parts, [&](const KnownPart& part) { return part.record == record; });
  const KnownPart& part = known == parts.end() ? parts.back() : *known;
  const auto place = std::ranges::find(used, part.title, &Part::name) - used.begin();
  if (place == std::ssize(used)) used.push_back({part.title, part.colour});
  return static_cast<std::size_t>(place);
}

// A rank begins its step when it has ended the one before, at another time than its neighbours.
struct OwnStep {
  double begin = INFINITY, end = 0, bubble = 0;
};

std::map<std::pair<std::int64_t, std::int64_t>, OwnStep> own_steps(const StepTimeline& timeline) {
  std::map<std::pair<std::int64_t, std::int64_t>, OwnStep> steps;  // by replica and stage
  for (const TimelineEvent& event : timeline.events) {
    OwnStep& step = steps[{event.replica, event.stage}];
    step.begin = std::min(step.begin, event.begin);
    step.end = std::max(step.end, event.end);
    if (event.part == "bubble") step.bubble += event.end - event.begin;
  }
  return steps;
}

// " pipeline: step 30 of epoch 2 of run 0123456789ab, 12.3 ms. Idle, waiting for a neighbouring stage: stage 0 31 %."
std::string step_text(const Report& report, const Arm& arm, double scale, const std::string& unit) {
  double longest = 0;
  std::map<std::int64_t, std::pair<double, double>> by_stage;  // waiting, all
  for (const auto& [rank, step] : own_steps(*arm.timeline)) {
    longest = std::max(longest, step.end - step.begin);
    by_stage[rank.second].first += step.bubble;
    by_stage[rank.second].second += step.end - step.begin;
  }
  std::string text = fmt::format(
      " {}: step {} of epoch {} of run {}, {} {}. Idle, waiting for a neighbouring stage:", arm.value,
      arm.timeline->step, arm.timeline->epoch, arm.timeline->run, for_table(longest * scale, 3), unit);
  for (const auto& [stage, seconds] : by_stage)
    text += fmt::format(" stage {} {} %{}", stage, fixed(100 * seconds.first / seconds.second, 0),
                        stage == by_stage.rbegin()->first ? "." : ",");
  if (arm.tensor.value_or(1) > 1) text += " A row is the first part of a stage.";
  if (arm.devices < arm.ranks()) text += " Its ranks share devices, so bars include waits for the device.";
  const auto run = std::ranges::find(report.runs, arm.timeline->run, &RunRow::key);
  if (run != report.runs.end() && !run->times_count) text += " The times of this run do not count.";
  return text;
}

void add_rows(Figure& figure, const Arm& arm, double scale) {
  auto& picture = std::get<Spans>(figure.picture);
  std::map<std::pair<std::int64_t, std::int64_t>, SpanRow> rows;
  for (const auto& [replica, stage, part, micro_batch, begin, end] : arm.timeline->events) {
    SpanRow& row = rows[{replica, stage}];
    row.group = arm.value;
    row.label =
        (arm.replicas > 1 ? fmt::format("replica {} ", replica) : "") + fmt::format("stage {}", stage);
    const std::string number = micro_batch < 0 ? "" : std::to_string(micro_batch);
    const std::size_t place = place_of(part, picture.parts);
    const std::string& colour = picture.parts[place].colour;
    row.spans.push_back(
        {place, begin * scale, end * scale, number, colour == "bubble" || colour == "communication"});
    figure.data.rows.push_back({arm.value, replica, stage, part, number, begin, end});
  }
  const bool few = rows.size() <= most_timeline_rows;
  for (auto& [rank, row] : rows)
    if (few || rank.first == 0) picture.rows.push_back(std::move(row));
}

}  // namespace

std::vector<Figure> make_timelines(const Report& report) {
  std::vector<Figure> figures;
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells) {
      std::vector<const Arm*> arms;
      double last = 0;
      for (const Arm* arm : cell.compared()) {
        if (cell.repeated || !arm->timeline) continue;
        arms.push_back(arm);
        for (const TimelineEvent& event : arm->timeline->events) last = std::max(last, event.end);
      }
      if (!(last > 0)) continue;
      Figure& figure = figures.emplace_back();
      figure.slug = cell.slug + "-timeline";
      figure.subject = cell.label;
      figure.title = "Timeline of one step";
      figure.unit = last < 1 ? "ms" : "s";
      figure.caption =
          "Numbers: micro-batches. Low bars: waiting for a neighbouring stage, and messages. A row begins "
          "when its rank has ended the step before.";
      figure.data.columns = {"arm", "replica", "stage", "part", "micro-batch", "begin s", "end s"};
      figure.picture = Spans{};
      std::string runs;
      for (const Arm* arm : arms) {
        add_rows(figure, *arm, last < 1 ? 1000 : 1);
        figure.caption += step_text(report, *arm, last < 1 ? 1000 : 1, figure.unit);
        runs += (runs.empty() ? "'" : ", '") + arm->timeline->run + "'";
      }
      figure.sql =
          "SELECT * FROM step_event WHERE run_key IN (" + runs + ") ORDER BY run_key, rank, begin_seconds";
    }
  return figures;
}

Figure make_time_breakdown(const Report& report) {
  Figure figure;
  figure.slug = "time-breakdown";
  figure.subject = report.name;
  figure.title = "Where the time of an epoch goes";
  figure.unit = "% of the baseline";
  Stacks picture;
  std::vector<const Cell*> cells;
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells) {
      Stack baseline = make_stack(cell, cell.baseline, 1);
      if (!cell.repeated) cells.push_back(&cell);
      if (cell.repeated || !(baseline.total > 0)) continue;
      baseline.reference = baseline.total;
      picture.stacks.push_back(baseline);
      for (const Arm& arm : cell.arms) {
        Stack stack = make_stack(cell, arm, baseline.total);
        if (!(stack.total > 0)) continue;
        figure.remarks.push_back(why_slower(cell, arm, baseline, stack));
        picture.stacks.push_back(std::move(stack));
      }
    }
  keep_parts_with_time(picture);
  if (picture.stacks.empty()) figure.missing = "no run whose times count recorded the parts of its time";
  figure.caption =
      "Seconds of the main thread, mean over seeds, ranks and timed epochs. Communication that is "
      "hidden behind computation is not counted." +
      uncounted_text(report, cells);
  figure.sql =
      "SELECT * FROM time_parts JOIN run_summary USING (run_key, experiment, model, strategy, seed)\n"
      "WHERE times_count AND experiment IN " +
      experiments_in_sql(report);
  figure.data = breakdown_table(picture);
  figure.picture = std::move(picture);
  return figure;
}

}  // namespace trainyard::reports
