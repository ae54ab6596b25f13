// A small file of the system, as of /proc, whole.
#pragma once

#include <filesystem>
#include <string>

namespace trainyard::orchestrator {

// "" where it cannot be read.
std::string whole_file(const std::filesystem::path& file);

}  // namespace trainyard::orchestrator
