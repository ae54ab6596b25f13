// The verbs of the command line. Each `add_…` puts its subcommand with its options on the program and, where
// the user calls it, sets `Invocation::action`; `main` runs that and turns exceptions into exit codes.
#pragma once

#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {

void add_new(CLI::App& program, Invocation& invocation);
void add_list(CLI::App& program, Invocation& invocation);
void add_data(CLI::App& program, Invocation& invocation);
void add_check(CLI::App& program, Invocation& invocation);
void add_plan(CLI::App& program, Invocation& invocation);
void add_run(CLI::App& program, Invocation& invocation);
void add_resume(CLI::App& program, Invocation& invocation);
void add_status(CLI::App& program, Invocation& invocation);
void add_show(CLI::App& program, Invocation& invocation);
void add_logs(CLI::App& program, Invocation& invocation);
void add_rm(CLI::App& program, Invocation& invocation);
void add_db(CLI::App& program, Invocation& invocation);
void add_report(CLI::App& program, Invocation& invocation);
void add_predict(CLI::App& program, Invocation& invocation);
void add_compare(CLI::App& program, Invocation& invocation);
void add_export(CLI::App& program, Invocation& invocation);
void add_sql(CLI::App& program, Invocation& invocation);

// `trainyard plan`, also reached as `trainyard run --dry-run`.

struct ExperimentOptions;
int plan_experiment(const ExperimentOptions& options);

}  // namespace trainyard::tools
