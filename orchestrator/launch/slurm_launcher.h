// Slurm launcher: one job per run, or one step per run in a shared allocation.
//
// The name of a job depends on run, attempt and yard. So an orchestrator that was started again finds its
// jobs in the queue and continues with them.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"

namespace trainyard::orchestrator {

inline constexpr const char* slurm_log_name = "slurm.log";  // output of Slurm itself, in the attempt's folder

// "trainyard-<key>-<attempt>-<digits of the attempt's folder>".
std::string slurm_job_name(const std::filesystem::path& attempt_folder, const std::string& run_id);

// Arguments of sbatch for a run: options, the script, and the arguments of srun. No shell reads any of them.
std::vector<std::string> sbatch_arguments(const experiments::Machine& machine, const std::string& job_name,
                                          const std::filesystem::path& folder, int ranks,
                                          const std::filesystem::path& script,
                                          const std::vector<std::string>& task);

// Arguments of srun for a step of an allocation.
std::vector<std::string> srun_arguments(const experiments::Machine& machine, const std::string& allocation,
                                        const std::string& step_name, int ranks,
                                        const std::vector<std::string>& task);

std::string own_allocation();  // number of the job that this process runs in; empty: none

// Launcher for jobs or for steps, depending on `allocation` in [machine]. UserError if there is no allocation to share.
std::unique_ptr<Launcher> slurm_launcher(const LauncherSetting& setting);

}  // namespace trainyard::orchestrator
