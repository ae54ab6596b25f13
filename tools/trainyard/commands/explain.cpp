// trainyard explain: the causes of other results and of slower steps, from what was recorded.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "experiments/config/derived_file.h"
#include "orchestrator/yard/yard.h"
#include "reports/analysis/analysis.h"
#include "reports/answer/why.h"
#include "reports/explain/ladder.h"
#include "reports/explain/probe.h"
#include "reports/format/aligned_text.h"
#include "reports/results/cells.h"
#include "reports/results/report_data.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/run_sweep.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

struct ExplainOptions {
  std::string experiment;
  std::vector<std::string> arms;
  std::string model;
  bool ladder = false;
  bool probe = false;
  std::int64_t seeds = 8;
  std::optional<fs::path> yard;
};

// Leaves the cells of the chosen model. UserError if its name is unknown.
void keep_model(reports::Report& report, const std::string& model) {
  if (model.empty()) return;
  std::vector<std::string> known;
  for (reports::Comparison& comparison : report.comparisons) {
    for (const reports::Cell& cell : comparison.cells) known.push_back(cell.model);
    std::erase_if(comparison.cells, [&](const reports::Cell& cell) { return cell.model != model; });
  }
  if (std::ranges::find(known, model) == known.end())
    throw UserError("no model of experiment \"" + report.name + "\" is \"" + model + "\"",
                    name_advice(model, known));
}

// Leaves the chosen arms. UserError if a name is unknown.
void keep_arms(reports::Report& report, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const reports::Comparison& comparison : report.comparisons)
    for (const reports::Cell& cell : comparison.cells)
      for (const reports::Arm& arm : cell.arms) known.push_back(arm.value);
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      throw UserError("no arm of experiment \"" + report.name + "\" is \"" + name + "\"",
                      name_advice(name, known));
  for (reports::Comparison& comparison : report.comparisons)
    for (reports::Cell& cell : comparison.cells)
      std::erase_if(cell.arms, [&](const reports::Arm& arm) {
        return !names.empty() && std::ranges::find(names, arm.value) == names.end();
      });
}

// The arm of a ladder or a probe.
struct ChosenArm {
  const db::RunSummary* baseline = nullptr;
  const db::RunSummary* arm = nullptr;
};

// UserError if the options do not choose one.
ChosenArm chosen_arm(const reports::ReportData& data, const ExplainOptions& options) {
  std::vector<ChosenArm> found;
  for (const experiments::Compare& compare : data.plan.compare)
    for (const reports::CellRuns& cell : reports::make_cells(data, compare)) {
      const bool chosen = options.model.empty() || options.model == cell.model;
      for (const reports::ArmRuns& arm : cell.arms)
        if (chosen && compare.axis == "strategy" && !arm.runs.empty() && !cell.baseline.runs.empty() &&
            (options.arms.empty() || std::ranges::find(options.arms, arm.value) != options.arms.end()))
          found.push_back({cell.baseline.runs.front().run, arm.runs.front().run});
    }
  if (found.size() == 1) return found.front();
  throw UserError(found.empty() ? "no arm of experiment \"" + data.experiment +
                                      "\" is a strategy with this name and model"
                                : fmt::format("{} arms fit, and {} is for one", found.size(),
                                              options.probe ? "a probe" : "a ladder"),
                  "choose it with --model NAME and --arm NAME, as in `trainyard compare`");
}

// Writes the experiment file of the ladder beside that of the experiment, trains it, and prints what each step does.
int climb(const ExplainOptions& options) {
  ExperimentOptions experiment;
  experiments::Ladder ladder;
  std::string name;
  {
    const auto database = open_yard(options.yard);
    const auto data = reports::gather_results(database, experiment_named(database, options.experiment));
    name = data.experiment + "-ladder";
    const auto [baseline, arm] = chosen_arm(data, options);
    ladder = reports::ladder_between(*baseline, *arm);
    experiment = journalled_experiment(database, data.experiment, "`trainyard run`");
    const std::string text =
        experiments::ladder_file(*experiment.toml, ladder, {name, arm->model, options.seeds});
    experiment.file = experiment.file.parent_path() / (name + ".toml");
    experiment.file = experiment.file.lexically_proximate(fs::current_path());
    write_new_file(experiment.file, text);
    experiment.toml = text;
  }
  experiment.yard = options.yard;
  experiment.selection = {
      .set = experiment.selection.set, .where = {}, .exclude_where = {}, .as = name, .max_seeds = 0};
  if (const int code = run_sweep(experiment, {}, "trainyard explain --ladder"); code != done) return code;
  const auto database = open_yard(options.yard);
  const auto data = reports::gather_results(database, name);
  std::cout << "\n" << reports::aligned_table(reports::ladder_table(data, ladder), output_width());
  if (const reports::Table times = reports::ladder_of_times(data, ladder); !times.rows.empty())
    std::cout << "\n" << reports::aligned_table(times, output_width());
  return done;
}

// Trains three steps of the arm, and then of the baseline with the arm's samples, in a yard of their own.
int probe(const ExplainOptions& options) {
  ExperimentOptions experiment;
  experiments::Probe made;
  {
    const auto database = open_yard(options.yard);
    const auto data = reports::gather_results(database, experiment_named(database, options.experiment));
    const auto [baseline, arm] = chosen_arm(data, options);
    experiment = journalled_experiment(database, data.experiment, "`trainyard run`");
    experiment.yard = orchestrator::yard_from(options.yard).root() / "probe";
    const fs::path folder = *experiment.yard / "samples" / arm->run_key;
    made = reports::probe_of(data, *baseline, *arm, folder.string());
    fs::create_directories(folder);
    experiment.toml = experiments::probe_file(*experiment.toml, made);
    std::vector<std::string> set = experiment.selection.set;
    set.emplace_back("epochs=1");
    experiment.selection = {
        .set = set, .where = {}, .exclude_where = {}, .as = data.experiment, .max_seeds = 0};
  }
  SweepChoices choices;
  choices.no_report = true;
  for (const std::string& strategy : {made.arm, made.baseline}) {
    experiment.selection.where = {"strategy=" + strategy};
    if (const int code = run_sweep(experiment, choices, "trainyard explain --probe"); code != done)
      return code;
  }
  const auto database = open_yard(experiment.yard);
  std::cout << "\n"
            << reports::aligned_table(
                   reports::probe_table(reports::gather_results(database, experiment.selection.as), made),
                   output_width());
  return done;
}

int explain(const ExplainOptions& options) {
  if (options.ladder) return climb(options);
  if (options.probe) return probe(options);
  const auto database = open_yard(options.yard);
  const auto data = reports::gather(database, experiment_named(database, options.experiment));
  reports::Report report = reports::make_report(data);
  if (std::ranges::none_of(report.comparisons, reports::has_verdicts))
    throw UserError("nothing to explain: experiment \"" + data.experiment +
                    "\" has no arm besides its baseline");
  keep_model(report, options.model);
  keep_arms(report, options.arms);
  std::cout << reports::why_text(report.comparisons, output_width(), true);
  return done;
}

}  // namespace

void add_explain(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "explain",
               "name causes of another result or of slower steps\n\n"
               "It compares what the recorder of the Python package observed in each arm and in its "
               "baseline. A cause is "
               "named only if its evidence holds in most pairs (docs/explain.md).",
               explain);
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  command->add_option("--arm", options->arms, "only this arm (can be repeated)")
      ->type_name("ARM")
      ->allow_extra_args(false);
  auto* ladder = command->add_flag(
      "--ladder", options->ladder,
      "train the way from the baseline to the arm, one change at a time, and print what each change does");
  auto* probe =
      command->add_flag("--probe", options->probe,
                        "train three steps of a recorded arm and of its baseline with the same samples and "
                        "weights, and compare their gradients");
  probe->excludes(ladder);
  command->add_option("--model", options->model, "only this model")->type_name("MODEL");
  command->add_option("--seeds", options->seeds, "of the ladder")
      ->type_name("N")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str()
      ->needs(ladder);
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
