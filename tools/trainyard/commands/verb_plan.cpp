// trainyard plan (= run --dry-run): which runs, their keys and devices, what is done, how long the rest will
// take, and what its seeds can find out.
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "reports/format/aligned_text.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/experiment_options.h"
#include "tools/trainyard/cli/plan_outlook.h"
#include "tools/trainyard/cli/text_table.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/plan_experiment.h"

namespace trainyard::tools {

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
      "show what `run` would do: runs, keys, devices, what is done, time, and what the "
      "planned seeds can resolve");
  auto options = std::make_shared<ExperimentOptions>();
  add_experiment_options(*command, *options);
  add_order_option(*command, options->plan);
  add_place_options(*command, *options);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return plan_experiment(*options); }; });
}

}  // namespace trainyard::tools
