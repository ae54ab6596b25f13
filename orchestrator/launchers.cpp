#include <array>

#include "orchestrator/launcher.h"

namespace trainyard::orchestrator {

std::span<const LauncherKind> launchers() {
  static const std::array<LauncherKind, 1> rows{
      {{"local", "processes on this host",
        [](const LauncherSetting& setting) { return local_launcher(setting.programs, setting.yard); }}}};
  return rows;
}

}  // namespace trainyard::orchestrator
