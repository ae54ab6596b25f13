// Log of a program: one line per event, in a file or on standard error.
//
//   2026-11-23T02:12:55.123Z info 4711 launched run=3f9a… attempt=1 label="mlp ddp seed 0"
//
// - A line has UTC, level, process id, the event in plain words, and its fields.
// - A value with a space is quoted and control characters are escaped, so an event is always one line.
// - All programs of trainyard write a log. Nothing is written before `File` or `to_standard_error`.
// - No result is computed from a log. If the disk is full or fails, only lines of the log are lost.
// - No line is written in a timed region.
#pragma once

#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::log {

enum class Level { trace, debug, info, warning, error, off };

std::string_view to_text(Level level);

// The names of the levels: "trace, debug, info, warning, error, off".
std::string level_words();

std::optional<Level> level_named(std::string_view text);

// TRAINYARD_LOG sets the level of every program. Ranks inherit it with their environment.
inline constexpr const char* level_variable = "TRAINYARD_LOG";

// The level in TRAINYARD_LOG; info if it is unset or empty. UserError if it is not the name of a level.
Level level_from_environment();

// Set TRAINYARD_LOG for the processes that this one starts.
void pass_on(Level level);

// A name and a value that belong to an event.
struct Field {
  Field(std::string_view field, std::string text) : name(field), value(std::move(text)) {}
  Field(std::string_view field, std::string_view text) : name(field), value(text) {}
  Field(std::string_view field, const char* text) : name(field), value(text) {}
  Field(std::string_view field, const std::filesystem::path& path) : name(field), value(path.string()) {}
  Field(std::string_view field, double number);  // six significant digits
  template <std::integral Number>
  Field(std::string_view field, Number number) : name(field), value(std::to_string(number)) {}

  std::string name;
  std::string value;
};
using Fields = std::vector<Field>;

// The part of a line after the process id.
std::string text_of(std::string_view event, const Fields& fields);

// A log file that this program appends to while the object lives.
// - At 5 MB `trainyard.log` becomes `trainyard.1.log`, and that becomes `trainyard.2.log`. Older lines are
//   lost.
// - If the file cannot be opened, or is not a regular file, nothing is logged. Links are not followed.
// - Child processes do not inherit the open file.
// - Thread safety: only one thread may open and close logs. Every thread may write.
class File {
 public:
  File(const std::filesystem::path& file, Level level);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

inline constexpr std::size_t largest_file = 5'000'000;  // bytes, then a new file is begun
inline constexpr std::size_t older_files = 2;

// Log to standard error until the process ends.
void to_standard_error(Level level);

void write(Level level, std::string_view event, const Fields& fields) noexcept;

inline void debug(std::string_view event, const Fields& fields = {}) {
  write(Level::debug, event, fields);
}
inline void info(std::string_view event, const Fields& fields = {}) {
  write(Level::info, event, fields);
}
inline void warning(std::string_view event, const Fields& fields = {}) {
  write(Level::warning, event, fields);
}
inline void error(std::string_view event, const Fields& fields = {}) {
  write(Level::error, event, fields);
}

// The level of a line of a log. Empty if the line is not from a log of trainyard.
std::optional<Level> level_of_line(std::string_view line);

}  // namespace trainyard::log
