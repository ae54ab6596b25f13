// How a call of the system that failed on a file is thrown.
#pragma once

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace trainyard::experiments {

[[noreturn]] inline void throw_file_error(const std::filesystem::path& file, int error = errno) {
  throw std::system_error(error, std::generic_category(), file.string());
}

}  // namespace trainyard::experiments
