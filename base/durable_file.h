// Files that are whole or not there, whatever is killed or loses its power meanwhile.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace trainyard::experiments {

// Writes `parts`, one after the other, as `file`: under another name first, which is synced and then renamed
// over what is there. std::system_error with the file's name where that fails; nothing of it stays then.
void write_durably(const std::filesystem::path& file, std::span<const std::string_view> parts);

void sync_file(const std::filesystem::path& file);
void sync_folder(const std::filesystem::path& folder);

}  // namespace trainyard::experiments
