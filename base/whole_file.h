// A small file, whole.
#pragma once

#include <filesystem>
#include <string>

namespace trainyard::orchestrator {

// "" where it cannot be read.
std::string whole_file(const std::filesystem::path& file);

// Whoever sees the file sees all of it, also after a crash. std::system_error with its name.
void write_whole_file(const std::filesystem::path& file, const std::string& text);

}  // namespace trainyard::orchestrator
