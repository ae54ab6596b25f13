// Small files: write them durably, sync them, read them whole.
// A reader sees the whole file or the file before it, even after a crash or a power failure.
#pragma once

#include <cerrno>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace trainyard {

// Write `parts`, one after the other, to `file`.
// - The bytes go to a temporary file, which is synced and then renamed to `file`.
// - Error: std::system_error with the file's name. The temporary file is removed. UserError if a FIFO or
//   something else that is not a plain file has its name.
void write_durably(const std::filesystem::path& file, std::span<const std::string_view> parts);

void sync_file(const std::filesystem::path& file);
void sync_folder(const std::filesystem::path& folder);

// Throw std::system_error for a system call that failed on `file`.
[[noreturn]] inline void throw_file_error(const std::filesystem::path& file, int error = errno) {
  throw std::system_error(error, std::generic_category(), file.string());
}

// The content of a small file. Empty if it cannot be read or is not a plain file.
std::string whole_file(const std::filesystem::path& file);

// The sorted names of all entries of a folder, without "." and "..".
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& failed);
std::vector<std::string> names_in(const std::filesystem::path& folder);  // UserError if it cannot be read

// Whether it is a folder, and not a link to one, which may lead anywhere.
bool is_folder(const std::filesystem::path& path);

// Whether the open file is still at its path. It may have been removed or replaced since.
bool is_still_at(int fd, const std::filesystem::path& file);

// `write_durably` with one part.
void write_whole_file(const std::filesystem::path& file, const std::string& text);

}  // namespace trainyard
