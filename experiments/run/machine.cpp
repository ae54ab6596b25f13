#include "experiments/run/machine.h"

#include <algorithm>

#include "base/error.h"
#include "base/named_row.h"

namespace trainyard::experiments {

std::span<const LauncherRules> launcher_rules() {
  static const std::vector<LauncherRules> rows{
      {.name = "local", .on_this_host = true},
      {.name = "slurm",
       .has_jobs = true,
       .program = "sbatch",
       .long_options = true,
       .own_options = {"--job-name", "--output", "--error", "--chdir", "--wrap", "--array", "--parsable",
                       "--requeue", "--export", "--signal", "--wait", "--ntasks", "--input"}},
      {.name = "mpi",
       .shares_hosts = false,
       .program = "mpirun",
       .own_options = {"-n", "-np", "--n", "--np", "--host", "-host", "--hostfile", "-hostfile"}},
  };
  return rows;
}

bool is_own_option(const LauncherRules& launcher, const std::string& option) {
  const std::string name = option.substr(0, option.find('='));
  return std::ranges::any_of(launcher.own_options, [&](const std::string& own) {
    return launcher.long_options ? own.starts_with(name) : own == name;
  });
}

const LauncherRules& Machine::rules() const {
  if (const auto* found = row_or_null(launcher_rules(), &LauncherRules::name, launcher)) return *found;
  throw InternalError("launcher \"" + launcher + "\" is not in the table of launchers");
}

}  // namespace trainyard::experiments
