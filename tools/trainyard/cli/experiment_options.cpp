#include "tools/trainyard/cli/experiment_options.h"

#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "experiments/matrix/stage_split.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/status_text.h"
#include "orchestrator/resources/cpu_topology.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/text_table.h"

namespace trainyard::tools {
namespace {

void print_problems(const std::vector<Problem>& problems) {
  for (const auto& problem : problems) std::cerr << to_text(problem) << '\n';
}

std::string devices_text(const orchestrator::PlannedRun& run) {
  std::string text;
  for (const auto& device : run.devices) text += (text.empty() ? "" : " ") + device.name;
  return text + (run.devices_shared ? " (shared)" : "");
}

// "GPUs: cuda:0 NVIDIA H200 (cores 0-7), …"; empty for a plan on CPU cores.
std::string gpu_lines(const orchestrator::Plan& plan) {
  std::vector<std::string> gpus;
  for (const auto& device : plan.devices)
    if (!device.gpu.empty() && !device.cores.empty())
      gpus.push_back(fmt::format("{} {} (cores {})", device.name, device.gpu,
                                 orchestrator::cpu_list_text(device.cores)));
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
    case orchestrator::PlanState::to_run:
      break;
  }
  return run.times_problem.empty() ? "to run" : "to run (times did not count)";
}

// "stages of vgg11 mp-ddp: 0-8 | 9-30 (…)": once for what is cut alike.
std::string stages_lines(const orchestrator::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& run : plan.runs) {
    if (run.run.strategy.stages == 1) continue;
    std::string line = fmt::format("stages of {} {}: layers {}\n", run.run.model, run.run.strategy.name,
                                   experiments::stages_text(run.run));
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines.empty() ? "" : "\n" + fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace

std::string times_offer(const orchestrator::Plan& plan) {
  std::map<std::string, std::size_t> runs_by_problem;
  for (const auto& run : plan.runs)
    if (run.state == orchestrator::PlanState::finished && !run.times_problem.empty())
      ++runs_by_problem[run.times_problem];
  std::string text;
  for (const auto& [problem, runs] : runs_by_problem)
    text += fmt::format("the times of {} do not count: {}\n", models::counted(runs, "finished run"), problem);
  return text.empty() ? "" : text + "`run` with --retrain-times trains them again\n";
}

void add_experiment_options(CLI::App& command, ExperimentOptions& options) {
  refuse_empty(command.add_option("FILE", options.file, "experiment file (TOML)")->required());
  command.add_option("--set", options.selection.set, "set a key for all runs: --set epochs=1")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--where", options.selection.where,
                  "only runs with this value: --where model=mlp; repeat for more names or values")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--exclude-where", options.selection.exclude_where,
                  "leave out runs with this value: --exclude-where model=mlp,seed=3 (both); repeat for more")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_order_option(CLI::App& command, orchestrator::PlanOptions& options) {
  command
      .add_option_function<std::string>(
          "--order",
          [&options](const std::string& text) {
            options.order = text == "declared" ? orchestrator::Order::declared : orchestrator::Order::paired;
          },
          "paired: arms of a pair next to each other, in an order drawn from data_seed; declared: as in the "
          "file")
      ->check(CLI::IsMember({"paired", "declared"}))
      ->default_str("paired");
  command.add_flag(
      "--reuse", options.reuse,
      "take the metrics of runs done elsewhere; times are compared only within one host and release");
  command.add_flag("--retrain-times", options.retrain_times,
                   "train finished runs again if their times do not count and would then");
}

void add_place_options(CLI::App& command, ExperimentOptions& options) {
  refuse_empty(
      command
          .add_option("--data", options.data, "folder of data sets (default: $TRAINYARD_DATA, else [data])")
          ->type_name("DIR"));
  add_yard_option(command, options.yard);
}

std::optional<experiments::Experiment> checked_experiment(const ExperimentOptions& options) {
  auto loaded = options.toml ? experiments::load_text(*options.toml, options.file, options.selection)
                             : experiments::load(options.file, options.selection);
  print_problems(loaded.problems);
  return std::move(loaded.experiment);
}

// JSON knows no other text: run files and the journal could not name the folder.
static void check_paths(const std::vector<std::filesystem::path>& paths) {
  for (const auto& path : paths)
    if (!models::is_utf8(path.string()))
      throw UserError("the path " + models::printable(path.string()) + " is not UTF-8",
                      "choose another folder");
}

static Machine machine_for(const experiments::Experiment& experiment) {
  Machine machine;
  machine.programs = orchestrator::find_programs();
  const orchestrator::RunnerFacts runner = orchestrator::runner_facts(machine.programs);
  machine.circumstances = runner.circumstances;
  machine.circumstances.communicator = experiment.machine.communicator;
  if (!experiment.machine.on_this_host()) {
    orchestrator::check_threads(experiment, static_cast<std::size_t>(experiment.machine.cpus_per_task));
    machine.devices = orchestrator::launcher_slots(experiment.machine);
    machine.circumstances = orchestrator::elsewhere(machine.circumstances, experiment.machine);
    return machine;
  }
  const std::vector<int> cores = orchestrator::usable_cores();
  orchestrator::check_threads(experiment, cores.size());
  machine.devices = orchestrator::host_devices(experiment.machine, runner.gpus, runner.cuda, cores);
  machine.circumstances = orchestrator::on_devices(machine.circumstances, machine.devices);
  orchestrator::check_commands(experiment);
  orchestrator::check_transport(experiment, machine.devices, machine.circumstances.nccl);
  orchestrator::check_precision(experiment, machine.devices);
  print_problems(orchestrator::device_problems(experiment, machine.devices));
  return machine;
}

Machine ready(experiments::Experiment& experiment, const orchestrator::Yard& yard,
              const std::optional<std::filesystem::path>& data) {
  const auto search = experiments::data_search(data);
  const auto file = std::filesystem::absolute(experiment.file);
  check_paths({yard.root(), yard.runs(), file, experiment.machine.spool, search.directory.value_or("")});
  experiments::resolve_data(experiment, search);
  orchestrator::settle(experiment.machine);
  auto machine = machine_for(experiment);
  orchestrator::make_launcher({experiment.machine, machine.programs, yard, file.parent_path()});
  return machine;
}

std::string plan_text(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                      const orchestrator::Yard& yard) {
  TextTable table{.columns = {"key", "run", "devices", "state", "expected"},
                  .rows = {},
                  .right = {false, false, false, false, true}};
  for (const auto& run : plan.runs)
    table.rows.push_back({run.key, experiments::label(run.run), devices_text(run), state_text(plan, run),
                          !plan.waits(run) || !run.expected_seconds
                              ? std::string()
                              : orchestrator::duration_text(*run.expected_seconds)});
  const auto expected = plan.expected_seconds();
  return aligned(table, output_width()) + stages_lines(plan) + gpu_lines(plan) +
         fmt::format("\n{}: {}, {} finished, {} to run{}; yard {}\n", experiment.name,
                     models::counted(plan.runs.size(), "run"), plan.runs.size() - plan.to_run(),
                     plan.to_run(),
                     plan.to_run() == 0 ? std::string()
                     : expected         ? ", about " + orchestrator::duration_text(*expected)
                                        : std::string(", time not known before one run of each kind is done"),
                     yard.root().string()) +
         times_offer(plan);
}

}  // namespace trainyard::tools
