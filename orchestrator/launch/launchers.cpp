#include <array>

#include "base/error.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/slurm_launcher.h"

namespace trainyard::orchestrator {

std::span<const LauncherKind> launchers() {
  static const std::array<LauncherKind, 3> rows{
      {{"local", "processes on this host",
        [](const LauncherSetting& setting) { return local_launcher(setting.programs, setting.yard); }},
       {"slurm", "jobs of Slurm, one a run, or steps of one allocation", slurm_launcher},
       {"mpi", "mpirun, on the hosts of a host file", mpi_launcher}}};
  return rows;
}

std::unique_ptr<Gang> Launcher::adopt(const std::filesystem::path& attempt_folder) {
  throw InternalError("a launcher without jobs was to adopt " + attempt_folder.string());
}

void settle(experiments::Machine& machine) {
  if (machine.launcher == "slurm" && machine.allocation.empty())
    machine.allocation = own_allocation().empty() ? "job" : "shared";
}

std::unique_ptr<Launcher> make_launcher(const LauncherSetting& setting) {
  for (const LauncherKind& kind : launchers())
    if (kind.name == setting.machine.launcher) return kind.make(setting);
  throw InternalError("launcher \"" + setting.machine.launcher + "\" is not in the table of launchers");
}

}  // namespace trainyard::orchestrator
