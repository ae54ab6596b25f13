// `trainyard plan`, also reached as `trainyard run --dry-run`.
#pragma once

namespace trainyard::tools {

struct ExperimentOptions;
int plan_experiment(const ExperimentOptions& options);

}  // namespace trainyard::tools
