// Small files: written durably, synced, and read whole.
//
// Files that are whole or not there, whatever is killed or loses its power meanwhile.
#pragma once

#include <cerrno>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace trainyard {

// Writes `parts`, one after the other, as `file`: under another name first, which is synced and then renamed
// over what is there. std::system_error with the file's name where that fails; nothing of it stays then.
void write_durably(const std::filesystem::path& file, std::span<const std::string_view> parts);

void sync_file(const std::filesystem::path& file);
void sync_folder(const std::filesystem::path& folder);

// How a call of the system that failed on a file is thrown.

[[noreturn]] inline void throw_file_error(const std::filesystem::path& file, int error = errno) {
  throw std::system_error(error, std::generic_category(), file.string());
}

// A small file, whole.

// "" where it cannot be read.
std::string whole_file(const std::filesystem::path& file);

// Whoever sees the file sees all of it, also after a crash. std::system_error with its name.
void write_whole_file(const std::filesystem::path& file, const std::string& text);

}  // namespace trainyard
