#include "orchestrator/resources/build_id.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/plain_file.h"
#include "base/sha256.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t part_bytes = std::uintmax_t{1} << 20;

bool is_of_the_system(const std::string& path) {
  return path.starts_with("/lib") || path.starts_with("/usr/lib");
}

// A line with the name, the size, and the hash of the first and last part of a file.
std::string short_description(const fs::path& file) {
  std::error_code unreadable;
  const std::uintmax_t size = fs::file_size(file, unreadable);
  PlainFileReader in(file);
  if (unreadable || !in) return file.filename().string() + "\n";
  std::string ends(static_cast<std::size_t>(std::min(size, part_bytes)), '\0');
  in.read(ends.data(), static_cast<std::streamsize>(ends.size()));
  in.seekg(static_cast<std::streamoff>(size - ends.size()));
  return fmt::format("{} {} {} {}\n", file.filename().string(), size, sha256_hex(ends), sha256_hex(in));
}

}  // namespace

std::string build_id(const fs::path& runner, const std::vector<std::string>& libraries) {
  std::vector<std::string> lines;
  for (const std::string& library : libraries)
    if (!is_of_the_system(library)) lines.push_back(short_description(library));
  std::ranges::sort(lines);
  PlainFileReader in(runner);
  std::string all = in ? sha256_hex(in) : "";
  for (const std::string& line : lines) all += "\n" + line;
  return sha256_hex(all).substr(0, 12);
}

}  // namespace trainyard::orchestrator
