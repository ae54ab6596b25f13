// trainyard plan (= run --dry-run): prints the runs with keys, devices and expected time, and what the seeds can
// resolve, per cell.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/host.h"
#include "base/text.h"
#include "experiments/design/cell_place.h"
#include "experiments/file/file.h"
#include "experiments/matrix/stage_split.h"
#include "experiments/run/run_model.h"
#include "models/tasks.h"
#include "orchestrator/plan/status.h"
#include "reports/format/aligned_text.h"
#include "reports/format/words.h"
#include "reports/statistics/power_analysis.h"
#include "reports/statistics/sequential_levels.h"
#include "tools/trainyard/cli/checked_experiment.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/run_sweep.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

using experiments::Compare;
using experiments::Experiment;
using experiments::Run;

constexpr int few_seeds = 5;  // with fewer seeds NO CHANGE is rarely found

struct PlannedArm {
  std::string cell;
  std::string arm;
  const Run* first = nullptr;
  std::set<std::string> pairs;  // seeds, if the comparison is not paired
};

// Varied names with more than one value in the runs: `--where` may leave a single value of an axis.
std::vector<std::string> differing_names(const Experiment& experiment) {
  std::map<std::string, std::set<std::string>> values;
  for (const Run& run : experiment.runs)
    for (const auto& [name, value] : experiments::values_by_name(run))
      values[name].insert(experiments::plain_text(value));
  std::vector<std::string> names = experiment.varied;
  std::erase_if(names, [&](const std::string& name) { return values[name].size() < 2; });
  return names;
}

std::string cell_text(const experiments::CellPlace& place) {
  const std::string further = experiments::further_text(place);
  return (place.model.empty() ? "all models" : place.model) + (further.empty() ? "" : ", ") + further;
}

std::vector<PlannedArm> planned_arms(const Experiment& experiment, const Compare& compare) {
  std::map<std::string, std::set<std::string>> baselines;
  std::vector<PlannedArm> arms;
  const std::vector<std::string> varied = differing_names(experiment);
  for (const Run& run : experiment.runs) {
    const auto values = experiments::values_by_name(run);
    const auto place = experiments::cell_place(experiments::text_in(values), compare, varied);
    const std::string cell = cell_text(place);
    const std::string pair = compare.pair.empty() ? std::to_string(run.seed) : place.pair;
    if (place.arm == compare.baseline) baselines[cell].insert(pair);
    if (place.arm.empty() || place.arm == compare.baseline) continue;
    if (experiments::is_limit(compare, run.strategy.kind, place.arm)) continue;
    auto found = std::ranges::find_if(
        arms, [&](const PlannedArm& one) { return one.cell == cell && one.arm == place.arm; });
    if (found == arms.end()) found = arms.insert(arms.end(), {cell, place.arm, &run, {}});
    found->pairs.insert(pair);
  }
  for (PlannedArm& arm : arms) {
    const std::set<std::string>& others = baselines[arm.cell];
    if (compare.pair.empty())
      while (arm.pairs.size() > others.size()) arm.pairs.erase(std::prev(arm.pairs.end()));
    else
      std::erase_if(arm.pairs, [&](const std::string& pair) { return !others.contains(pair); });
  }
  std::erase_if(arms, [](const PlannedArm& arm) { return arm.pairs.empty(); });
  return arms;
}

// The nominal level of the last look, as Holm's correction begins.
double level_for(const std::vector<PlannedArm>& arms, const std::string& arm, const Compare& compare) {
  const auto family = std::ranges::count(arms, arm, &PlannedArm::arm);
  const double level = compare.alpha / static_cast<double>(family);
  return compare.seeds ? reports::nominal_level(level, {compare.seeds->min, compare.seeds->max}) : level;
}

std::string percent(double log_ratio) {
  return fmt::format("{:.2g} %", 100 * std::expm1(log_ratio));
}

std::string points(double value) {
  return fmt::format("{:.2g} pp", value);
}

// Outlooks by n, paired, margin and level: many cells have the same plan, and each outlook searches over integrals.
using Outlooks = std::map<std::tuple<int, bool, double, double>, std::optional<reports::Outlook>>;

const std::optional<reports::Outlook>& outlook_of(const reports::PlannedTest& test, Outlooks& known) {
  const auto [place, added] =
      known.try_emplace(std::make_tuple(test.n, test.paired, test.margin, test.level), std::nullopt);
  if (added) place->second = reports::outlook_of(test);
  return place->second;
}

void add_cells(reports::TableRow& row, const std::optional<reports::Outlook>& outlook,
               std::string (*shown)(double)) {
  row.emplace_back(outlook ? shown(outlook->widest_spread) : "–");
  row.emplace_back(outlook ? shown(outlook->smallest_effect) : "–");
}

reports::PlannedTest accuracy_test(const Compare& compare, const std::vector<PlannedArm>& arms,
                                   const PlannedArm& arm) {
  return {static_cast<int>(arm.pairs.size()), !compare.pair.empty(), compare.margins.accuracy_points,
          level_for(arms, arm.arm, compare)};
}

reports::Table outlook_table(const Compare& compare, const std::vector<PlannedArm>& arms,
                             Outlooks& outlooks) {
  reports::Table table;
  table.columns = {"cell", compare.axis};
  for (const char* title :
       {"n", "accuracy spread", "effect", "loss spread", "effect", "time spread", "effect"})
    table.columns.push_back(reports::right_column(title));
  for (const PlannedArm& arm : arms) {
    reports::PlannedTest test = accuracy_test(compare, arms, arm);
    auto& row = table.rows.emplace_back(reports::TableRow{arm.cell, arm.arm, test.n});
    add_cells(row, outlook_of(test, outlooks), points);
    test.margin = std::log(compare.margins.loss.ratio);
    add_cells(row, outlook_of(test, outlooks), percent);
    test.margin = std::log(compare.margins.time);
    add_cells(row, outlook_of(test, outlooks), percent);
  }
  return table;
}

bool classifies(const Run& run) {
  return models::has_chance_level(run.declared.model_title.empty() ? experiments::task_name(run)
                                                                   : run.declared.task);
}

// Numbers of validation samples. The data is read once per data set and split.
using SampleCounts = std::map<std::string, std::int64_t>;

std::int64_t validation_samples(const models::DataChoice& data, SampleCounts& counts) {
  std::string name = data.source + data.fingerprint + std::to_string(data.split_seed);
  for (const double part : data.split) name += " " + std::to_string(part);
  const auto [place, added] = counts.try_emplace(name, 0);
  if (added) place->second = models::sample_count(models::read(data).validation);
  return place->second;
}

// Warnings on cells and arms, each text once, with its places in order.
using PlanWarnings = std::vector<std::pair<std::string, std::vector<std::string>>>;

void add_warning(PlanWarnings& warnings, const std::string& place, const std::string& text) {
  reports::add_new(reports::value_of_key(warnings, text), place);
}

void add_warnings(const Compare& compare, const std::vector<PlannedArm>& arms, Outlooks& outlooks,
                  SampleCounts& counts, PlanWarnings& warnings) {
  for (const PlannedArm& arm : arms) {
    const auto n = static_cast<int>(arm.pairs.size());
    const std::string name = arm.cell + " " + arm.arm;
    if (!outlook_of(accuracy_test(compare, arms, arm), outlooks))
      add_warning(
          warnings, name,
          counted(n, "seed") + " cannot be tested, every verdict will be INCONCLUSIVE; plan at least 3");
    else if (n < few_seeds)
      add_warning(warnings, name,
                  fmt::format("NO CHANGE is unlikely with {} seeds; plan {} or more", n, few_seeds));
    if (!classifies(*arm.first) || !arm.first->declared.dataset_title.empty()) continue;
    const auto samples = validation_samples(arm.first->data, counts);
    if (reports::too_coarse(static_cast<double>(samples), compare.margins.accuracy_points))
      add_warning(
          warnings, arm.cell,
          fmt::format(
              "the accuracy of {} validation samples moves in steps of {:.2g} points: NO CHANGE cannot "
              "be reached at a margin of {} points; use more samples or a wider margin",
              samples, 100.0 / static_cast<double>(samples), compare.margins.accuracy_points));
  }
}

struct PlanOutlook {
  std::string text;  // one table per comparison, empty if the file compares nothing
  // Arms that cannot be tested, or for which NO CHANGE is unlikely or impossible.
  std::vector<std::string> warnings;
};

PlanOutlook plan_outlook(const Experiment& experiment) {
  PlanOutlook outlook;
  Outlooks outlooks;
  SampleCounts counts;
  PlanWarnings warnings;
  for (const Compare& compare : experiment.compare) {
    const std::vector<PlannedArm> arms = planned_arms(experiment, compare);
    if (arms.empty()) continue;
    outlook.text +=
        "\n" +
        reports::paragraph(
            fmt::format(
                "How small an effect can these seeds show against {} {}? NO CHANGE is likely if the "
                "difference "
                "varies between seeds by at most `spread` (standard deviation). At that spread, `effect` is "
                "the smallest change that is likely to be found. Likely: in 80 % of such experiments.",
                compare.axis, compare.baseline),
            output_width()) +
        reports::aligned_table(outlook_table(compare, arms, outlooks), output_width());
    add_warnings(compare, arms, outlooks, counts, warnings);
  }
  for (const auto& [text, places] : warnings) {
    const std::size_t others = places.size() - 1;
    const std::string more = others == 0 ? "" : " and " + counted(others, "other");
    outlook.warnings.push_back(fmt::format("{}{}: {}", places.front(), more, text));
  }
  return outlook;
}

std::string devices_text(const orchestrator::PlannedRun& run) {
  return joined(run.devices, &orchestrator::Device::name, " ") + (run.devices_shared ? " (shared)" : "") +
         (run.membership ? " (" + run.membership->cause + ")" : "");
}

// "GPUs: cuda:0 NVIDIA H200 (cores 0-7), …"; empty for a plan on CPU cores.
std::string gpu_lines(const orchestrator::Plan& plan) {
  std::vector<std::string> gpus;
  for (const auto& device : plan.devices)
    if (!device.gpu.empty() && !device.cores.empty())
      gpus.push_back(fmt::format("{} {} (cores {})", device.name, device.gpu, cpu_list_text(device.cores)));
  return gpus.empty() ? "" : fmt::format("\nGPUs: {}\n", fmt::join(gpus, ", "));
}

std::string state_text(const orchestrator::Plan& plan, const orchestrator::PlannedRun& run) {
  switch (run.state) {
    case orchestrator::PlanState::finished:
      return run.times_problem.empty() ? "finished" : "finished (times do not count)";
    case orchestrator::PlanState::done_elsewhere:
      return plan.reuse ? "reused (done elsewhere)" : "to run (done elsewhere)";
    case orchestrator::PlanState::left_out:
      return "left out";
    case orchestrator::PlanState::not_needed:
      return "not needed";
    case orchestrator::PlanState::to_run:
      break;
  }
  return run.times_problem.empty() ? "to run" : "to run (times did not count)";
}

// "stages of vgg11 mp-ddp: layers 0-8 | 9-30 (…)", "split of mlp tensor: layers 1 (columns), 3 (rows)": one line per
// distinct split.
std::string stages_lines(const orchestrator::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& run : plan.runs) {
    const auto add = [&](const char* what, const std::string& layers) {
      std::string line =
          fmt::format("{} of {} {}: layers {}\n", what, run.run.model, run.run.strategy.name, layers);
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    };
    if (run.run.strategy.stages > 1) add("stages", experiments::stages_text(run.run));
    if (run.run.strategy.tensor > 1)
      add("split", models::split_text(experiments::graph_of(run.run, run.run.data.input),
                                      experiments::tensor_split_of(run.run)));
  }
  return lines.empty() ? "" : "\n" + fmt::format("{}", fmt::join(lines, ""));
}

std::string label_without_seed(const experiments::Run& run) {
  std::string text = experiments::label(run);
  const std::string seed = fmt::format(" seed {}", run.seed);
  return text.erase(text.find(seed), seed.size());
}

// A row for each run. Seeds that are not needed have one row for all. So have those that wait after the first `min`, because
// only verdicts show which are needed.
reports::Table runs_table(const experiments::Experiment& experiment, const orchestrator::Plan& plan) {
  reports::Table table;
  table.columns = {"key", "run", "devices", "state", reports::right_column("expected")};
  std::size_t first_seeds = plan.until_decided ? 0 : plan.runs.size();
  for (const auto& compare : experiment.compare)
    if (compare.seeds) first_seeds = std::max(first_seeds, static_cast<std::size_t>(compare.seeds->min));
  struct FurtherSeeds {
    std::size_t count = 0, row = 0;
  };
  std::map<std::string, std::size_t> listed;
  std::map<std::string, FurtherSeeds> further;
  for (const auto& run : plan.runs) {
    const bool waits = plan.waits(run);
    const std::string all_seeds = label_without_seed(run.run);
    const bool is_further = waits && listed[all_seeds] >= first_seeds;
    const std::string state = is_further ? "if needed" : state_text(plan, run);
    if (is_further || run.state == orchestrator::PlanState::not_needed) {
      auto& [count, row] = further[all_seeds + state];
      if (count++ == 0) {
        row = table.rows.size();
        table.rows.push_back({"", "", devices_text(run), state, std::string()});
      }
      table.rows[row][1] = fmt::format("{}, {}", all_seeds, counted(count, "further seed"));
      continue;
    }
    ++listed[all_seeds];
    table.rows.push_back(
        {run.key, experiments::label(run.run), devices_text(run), state,
         !waits || !run.expected_seconds ? std::string() : duration_text(*run.expected_seconds)});
  }
  return table;
}

std::string plan_text(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                      const orchestrator::Yard& yard) {
  const std::size_t not_needed = plan.in_state(orchestrator::PlanState::not_needed);
  return reports::aligned_table(runs_table(experiment, plan), output_width()) + stages_lines(plan) +
         gpu_lines(plan) +
         fmt::format("\n{}: {}, {} finished, {}{}{}; yard {}\n", experiment.name,
                     counted(plan.runs.size(), "run"), plan.runs.size() - plan.to_run() - not_needed,
                     not_needed == 0 ? std::string() : fmt::format("{} not needed, ", not_needed),
                     orchestrator::waiting_text(plan),
                     plan.to_run() == 0 || plan.expected_seconds()
                         ? ""
                         : ", expected time unknown until one run of each kind has finished",
                     yard.root().string()) +
         times_offer(plan);
}

}  // namespace

int plan_experiment(const ExperimentOptions& options) {
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  const auto yard = orchestrator::yard_from(options.yard);
  const auto machine = ready(*experiment, yard, /*makes_yard=*/true, options.data);
  std::optional<db::Database> database;
  if (yard.exists()) database = db::Database::open_read_only(yard.database());
  auto plan = orchestrator::make_plan(*experiment, machine.devices, machine.circumstances,
                                      database ? &*database : nullptr, options.plan);
  if (const auto needed = needed_in(*experiment))
    orchestrator::leave_out_unneeded(plan, database ? needed(*database) : orchestrator::Needed{});
  const PlanOutlook outlook = plan_outlook(*experiment);
  std::cout << plan_text(*experiment, plan, yard) << outlook.text;
  for (const auto& warning : outlook.warnings)
    std::cerr << reports::paragraph("warning: " + warning, output_width(STDERR_FILENO));
  return done;
}

void add_plan(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "plan",
               "show what `run` would do, and how small an effect it can show\n\n"
               "Lists the runs with their keys and devices, what is done, and the expected time.",
               plan_experiment);
  add_experiment_options(*command, *options);
  add_order_option(*command, options->plan);
  add_place_options(*command, *options);
}

}  // namespace trainyard::tools
