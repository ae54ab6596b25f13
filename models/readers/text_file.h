// A text file whole, plain or gzip, checked to be UTF-8.
#pragma once

#include <filesystem>
#include <string>

namespace trainyard::models {

// UserError names file and byte where it cannot be read or is not UTF-8.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace trainyard::models
