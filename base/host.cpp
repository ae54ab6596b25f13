#include "base/host.h"

#include <array>
#include <cstdlib>
#include <sstream>

#include <unistd.h>

#include "base/text.h"

namespace trainyard {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return printable_line(name.data());
}

bool is_executable(const fs::path& file) {
  std::error_code none;
  return fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<fs::path> program_path(const std::string& name, const fs::path& folder) {
  const auto there = [](const fs::path& file) {
    return is_executable(file) ? std::optional(file) : std::nullopt;
  };
  if (name.find('/') != std::string::npos) return there(folder / name);
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "/bin:/usr/bin" : path) +
                             ":");  // getline drops an empty last folder without it
  for (std::string each; std::getline(folders, each, ':');)
    if (auto found = there(folder / each / name)) return found;
  return std::nullopt;
}

}  // namespace trainyard
