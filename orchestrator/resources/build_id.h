// The build of the runner, as a circumstance of its runs: two builds of one version may differ in speed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::orchestrator {

// 12 hexadecimal digits, from these parts:
// - the content of the runner
// - per library of the runner: its name, size, first MiB and last MiB, because LibTorch is too large to be
//   read at each start. A file that cannot be read counts as empty.
// Libraries below /lib and /usr/lib are left out. Otherwise an update of the system would change the build.
std::string build_id(const std::filesystem::path& runner, const std::vector<std::string>& libraries);

}  // namespace trainyard::orchestrator
