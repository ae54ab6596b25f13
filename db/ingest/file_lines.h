// Lines of a journal or record file. Only plain files are read, because reading a pipe or a device could wait
// forever or fill the memory. The longest line limits the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace trainyard::db {

// Limit of a line of the journal: an entry has all runs of an experiment.
inline constexpr std::size_t longest_entry = std::size_t{256} << 20;

struct DamagedLine {
  enum class Kind { not_plain, zeros, too_long } kind;
  std::int64_t number;  // 0: the file as a whole, which is not a plain file
  std::string problem;
};

struct LineReader {
  std::size_t longest_line;
  // Called for each line that ends in a newline. Returns whether to continue.
  std::function<bool(const std::string& line, std::int64_t number)> take;
  // Called for each line that cannot be read: it has zeros, also if it is the last one without its newline, or it
  // is too long. Returns whether to continue after zeros. A line that is too long ends the reading.
  std::function<bool(const DamagedLine& line)> damaged;
};

// Reads `file` once. A last line without its newline is ignored, because it is still being written. UserError
// if this user cannot read the file.
void read_lines(const std::filesystem::path& file, const LineReader& reader);

// Why `file` is not a plain file: "is a link, which is not followed". Empty for plain and missing files.
std::string why_not_plain(const std::filesystem::path& file);

}  // namespace trainyard::db
