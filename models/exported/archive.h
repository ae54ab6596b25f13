// The zip archive of an exported file, read into memory within limits. Nothing is written to disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace trainyard::models::pt2 {

inline constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 31U;  // of an exported file
inline constexpr std::size_t most_entries = 100'000;

// Contents by name, without the folder that all names of the archive begin with.
using Entries = std::map<std::string, std::shared_ptr<const std::string>>;

// The entries that `wanted` accepts, by name. All entries are read to their end, so that every checksum is verified.
// - UserError if the file cannot be opened.
// - Fault if the archive is damaged or too large, unpacks to more than its own size, or has a name that is unsafe or
//   there twice.
Entries read_entries(const std::filesystem::path& path,
                     const std::function<bool(const std::string&)>& wanted);

}  // namespace trainyard::models::pt2
