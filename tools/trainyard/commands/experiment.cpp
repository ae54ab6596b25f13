// trainyard new | check | plan. `plan` also prints what the seeds of the experiment can resolve, per cell.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/disk_failure.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "experiments/config/config_strategies.h"
#include "experiments/design/cell_place.h"
#include "experiments/file/file.h"
#include "experiments/run/run_model.h"
#include "reports/format/aligned_text.h"
#include "reports/statistics/power_analysis.h"
#include "reports/statistics/procedure.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/experiment_options.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

struct PlanOutlook {
  std::string text;  // one table per comparison, empty if the file compares nothing
  // Arms that cannot be tested, or for which NO CHANGE is unlikely or impossible.
  std::vector<std::string> warnings;
};

// Call `resolve_data` first: this reads the data of classifiers to count validation samples.
PlanOutlook plan_outlook(const experiments::Experiment& experiment);

// trainyard new: an example experiment file with comments.

namespace {

struct NewOptions {
  std::filesystem::path file = "experiment.toml";
  bool force = false;
};

int write_new(const NewOptions& options) {
  const bool replaces = std::filesystem::exists(options.file);
  if (replaces && !options.force)
    throw UserError(options.file.string() + " already exists",
                    "choose another name, or replace it with --force");
  if (replaces && !std::filesystem::is_regular_file(options.file))
    throw UserError(options.file.string() + " is not a regular file", "choose another name");
  try {  // atomic: if the disk is full, the older file stays
    write_whole_file(
        replaces ? std::filesystem::canonical(options.file) : std::filesystem::absolute(options.file),
        experiments::template_file(options.file.stem().string()));
  } catch (const std::system_error& error) {
    throw_unwritten(options.file.string() + " cannot be written", "check the folder and the free disk space",
                    error.code().value());
  }
  std::cout << "wrote " << options.file.string() << "; run it with: trainyard run "
            << shell_quoted(options.file.string()) << '\n';
  return done;
}

}  // namespace

void add_new(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("new", "write an example experiment file with comments");
  auto options = std::make_shared<NewOptions>();
  refuse_empty(command->add_option("FILE", options->file, "file to write")->capture_default_str());
  command->add_flag("--force", options->force, "replace the file if it exists");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return write_new(*options); }; });
}

// trainyard check: checks the experiment file, its data and programs, and this machine. Nothing is trained.

namespace {

struct CheckOptions : ExperimentOptions {
  bool file_only = false;
};

// ", on cuda:0 (NVIDIA H200)". Empty if the launcher chooses the devices.
std::string places(const experiments::Experiment& experiment, const Machine& machine) {
  if (!experiment.machine.on_this_host()) return "";
  std::vector<std::string> names;
  for (const auto& device : orchestrator::grouped(machine.devices, machine.devices.size()))
    names.push_back(device.gpu.empty() ? device.name : fmt::format("{} ({})", device.name, device.gpu));
  return fmt::format(", on {}", fmt::join(names, ", "));
}

// Compares each exported network with PyTorch, once per file. False if one differs.
bool networks_agree(const experiments::Experiment& experiment, const orchestrator::Programs& programs) {
  std::map<std::filesystem::path, std::string> files;  // to the name of the model
  for (const auto& run : experiment.runs)
    if (run.exported) files.emplace(run.exported->path, run.model);
  bool agree = true;
  for (const auto& [file, model] : files) {
    const orchestrator::NetworkCheck found = orchestrator::check_network(programs, file);
    agree = agree && found.agrees;
    if (found.agrees)
      std::cout << fmt::format("model {}: {}\n", model, found.line);
    else
      std::cerr << fmt::format("trainyard: {}\n", found.line);
  }
  return agree;
}

int check(const CheckOptions& options) {
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  std::string where;
  if (!options.file_only) {
    const Machine machine = ready(*experiment, orchestrator::yard_from(options.yard), options.data);
    if (!networks_agree(*experiment, machine.programs)) return wrong_usage;
    for (const std::string& warning : experiments::unlisted_files(*experiment))
      std::cerr << reports::paragraph("warning: " + warning, output_width(STDERR_FILENO));
    where = places(*experiment, machine);
  }
  std::cout << options.file.string() << ": ok, " << counted(experiment->runs.size(), "run") << where << "\n";
  return done;
}

}  // namespace

void add_check(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "check",
      "check an experiment file, its data and this machine\n\n"
      "Checks every line, finds the data and the programs, and checks "
      "that this machine can run it. Warns if `files` of a program of yours "
      "is missing, or lacks a file that its `command` names. Compares one training "
      "step and one evaluation of each exported network with PyTorch. Nothing is trained.");
  auto options = std::make_shared<CheckOptions>();
  add_experiment_options(*command, *options);
  add_place_options(*command, *options);
  command->add_flag("--file-only", options->file_only,
                    "check only the file, not its data, its programs or this machine");
  command->callback([options, &invocation] { invocation.action = [options] { return check(*options); }; });
}

// trainyard plan (= run --dry-run): prints the runs with keys, devices and expected time, and what the seeds
// can resolve.

int plan_experiment(const ExperimentOptions& options) {
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  const auto yard = orchestrator::yard_from(options.yard);
  const auto machine = ready(*experiment, yard, options.data);
  std::optional<db::Database> database;
  if (yard.exists()) database = db::Database::open_read_only(yard.database());
  const auto plan = orchestrator::make_plan(*experiment, machine.devices, machine.circumstances,
                                            database ? &*database : nullptr, options.plan);
  const PlanOutlook outlook = plan_outlook(*experiment);
  std::cout << plan_text(*experiment, plan, yard) << outlook.text;
  for (const auto& warning : outlook.warnings)
    std::cerr << reports::paragraph("warning: " + warning, output_width(STDERR_FILENO));
  return done;
}

void add_plan(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "plan",
      "show what `run` would do, and how small an effect it can show\n\n"
      "Lists the runs with their keys and devices, what is done, and the expected time.");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  add_order_option(*command, options->plan);
  add_place_options(*command, *options);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return plan_experiment(*options); }; });
}

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

double level_for(const std::vector<PlannedArm>& arms, const std::string& arm, const Compare& compare) {
  const auto family = std::ranges::count(arms, arm, &PlannedArm::arm);
  return reports::level_of_look(0, compare.alpha, compare.final_look) / static_cast<double>(family);
}

std::string percent(double log_ratio) {
  return fmt::format("{:.2g} %", 100 * std::expm1(log_ratio));
}

std::string points(double value) {
  return fmt::format("{:.2g} pp", value);
}

// Cache of outlooks: many cells have the same plan, and each outlook searches over integrals.
class Outlooks {
 public:
  const std::optional<reports::Outlook>& of(const reports::PlannedTest& test) {
    const auto [place, added] =
        known_.try_emplace(std::make_tuple(test.n, test.paired, test.margin, test.level), std::nullopt);
    if (added) place->second = reports::outlook_of(test);
    return place->second;
  }

 private:
  std::map<std::tuple<int, bool, double, double>, std::optional<reports::Outlook>> known_;
};

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
    add_cells(row, outlooks.of(test), points);
    test.margin = std::log(compare.margins.loss.ratio);
    add_cells(row, outlooks.of(test), percent);
    test.margin = std::log(compare.margins.time);
    add_cells(row, outlooks.of(test), percent);
  }
  return table;
}

bool classifies(const Run& run) {
  if (!run.declared.model_title.empty()) return run.declared.task == "classification";
  return experiments::task_name(run) == "classification";
}

// Numbers of validation samples. The data is read once per data set and split.
class SampleCounts {
 public:
  std::int64_t validation(const models::DataChoice& data) {
    std::string name = data.source + data.fingerprint + std::to_string(data.split_seed);
    for (const double part : data.split) name += " " + std::to_string(part);
    const auto [place, added] = counts_.try_emplace(name, 0);
    if (added) place->second = models::sample_count(models::read(data).validation);
    return place->second;
  }

 private:
  std::map<std::string, std::int64_t> counts_;
};

// Warnings on cells and arms. Each text is printed once, with its first place and the number of the others.
class PlanWarnings {
 public:
  void add(const std::string& place, const std::string& text) {
    auto warning = std::ranges::find(warnings_, text, &Warning::text);
    if (warning == warnings_.end()) warning = warnings_.insert(warning, {text, {}});
    auto& places = warning->places;
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& [text, places] : warnings_) {
      const std::size_t others = places.size() - 1;
      const std::string more = others == 0 ? "" : " and " + counted(others, "other");
      texts.push_back(fmt::format("{}{}: {}", places.front(), more, text));
    }
    return texts;
  }

 private:
  struct Warning {
    std::string text;
    std::vector<std::string> places;
  };
  std::vector<Warning> warnings_;
};

void add_warnings(const Compare& compare, const std::vector<PlannedArm>& arms, Outlooks& outlooks,
                  SampleCounts& counts, PlanWarnings& warnings) {
  for (const PlannedArm& arm : arms) {
    const auto n = static_cast<int>(arm.pairs.size());
    const std::string name = arm.cell + " " + arm.arm;
    if (!outlooks.of(accuracy_test(compare, arms, arm)))
      warnings.add(name, counted(n, "seed") +
                             " cannot be tested, every verdict will be INCONCLUSIVE; plan at least 3");
    else if (n < few_seeds)
      warnings.add(name, fmt::format("NO CHANGE is unlikely with {} seeds; plan {} or more", n, few_seeds));
    if (!classifies(*arm.first) || !arm.first->declared.dataset_title.empty()) continue;
    const auto samples = counts.validation(arm.first->data);
    if (reports::too_coarse(static_cast<double>(samples), compare.margins.accuracy_points))
      warnings.add(
          arm.cell,
          fmt::format(
              "the accuracy of {} validation samples moves in steps of {:.2g} points: NO CHANGE cannot "
              "be reached at a margin of {} points; use more samples or a wider margin",
              samples, 100.0 / static_cast<double>(samples), compare.margins.accuracy_points));
  }
}

}  // namespace

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
  outlook.warnings = warnings.texts();
  return outlook;
}

}  // namespace trainyard::tools
