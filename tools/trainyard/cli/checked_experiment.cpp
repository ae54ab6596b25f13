#include "tools/trainyard/cli/checked_experiment.h"

#include <algorithm>
#include <cstdint>
#include <future>
#include <iostream>

#include <fmt/format.h>

#include "base/text.h"
#include "orchestrator/launch/launcher.h"
#include "tools/trainyard/cli/terminal.h"

namespace trainyard::tools {

void print_problems(const std::vector<Problem>& problems) {
  constexpr std::size_t most = 20;
  std::size_t errors = 0, warnings = 0;
  for (const auto& problem : problems)
    if (++(problem.warning ? warnings : errors) <= most) std::cerr << to_text(problem) << '\n';
  if (warnings > most) std::cerr << "and " << counted(warnings - most, "more warning") << '\n';
  if (errors > most)
    std::cerr << "and " << counted(errors - most, "more error")
              << "; correct these first, then check again\n";
}

std::optional<experiments::Experiment> checked_experiment(const ExperimentOptions& options) {
  auto loaded = options.toml ? experiments::load_text(*options.toml, options.file, options.selection)
                             : experiments::load(options.file, options.selection);
  print_problems(loaded.problems);
  if (loaded.is_try && loaded.experiment)
    std::cerr << "note: --set changes runs, so this experiment and its report are called "
              << loaded.experiment->name << "; --as NAME gives another name\n";
  return std::move(loaded.experiment);
}

// JSON is UTF-8: run files and the journal could not contain another path.
static void check_paths(const std::vector<std::filesystem::path>& paths) {
  for (const auto& path : paths)
    if (!is_utf8(path.string()))
      throw UserError("the path " + printable(path.string()) + " is not UTF-8", "choose another folder");
}

using Runner = std::pair<orchestrator::Programs, orchestrator::RunnerFacts>;

static Runner find_runner(bool needs_runner) {
  const auto programs = orchestrator::find_programs(needs_runner);
  return {programs, needs_runner ? orchestrator::runner_facts(programs)
                                 : orchestrator::facts_for_own_programs(programs)};
}

static orchestrator::Machine machine_for(const experiments::Experiment& experiment, const Runner& found) {
  const auto& [programs, runner] = found;
  orchestrator::Machine machine;
  machine.programs = programs;
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

static void resolve_data(experiments::Experiment& experiment, const orchestrator::Yard& yard, bool makes_yard,
                         const std::optional<std::filesystem::path>& search) {
  ProgressLine line;
  experiments::resolve_data(experiment, search,
                            {.folder = yard.decoded(),
                             .writes = makes_yard || yard.exists(),
                             .progress = [&](std::int64_t done, std::int64_t all) {
                               line.show(
                                   static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(all),
                                   [&] { return fmt::format("decoding pictures: {} of {}", done, all); });
                             }});
}

orchestrator::Machine ready(experiments::Experiment& experiment, const orchestrator::Yard& yard,
                            bool makes_yard, const std::optional<std::filesystem::path>& data) {
  const auto search = experiments::data_search(data);
  const auto file = std::filesystem::absolute(experiment.file);
  check_paths({yard.root(), yard.runs(), file, experiment.machine.spool, search.value_or("")});
  const bool needs_runner = !std::ranges::all_of(
      experiment.runs, [](const experiments::Run& run) { return run.strategy.foreign(); });
  auto runner = std::async(std::launch::async, find_runner, needs_runner);  // it loads LibTorch meanwhile
  resolve_data(experiment, yard, makes_yard, search);
  orchestrator::apply_defaults(experiment.machine);
  auto machine = machine_for(experiment, runner.get());
  orchestrator::make_launcher({experiment.machine, machine.programs, yard, file.parent_path()});
  return machine;
}

}  // namespace trainyard::tools
