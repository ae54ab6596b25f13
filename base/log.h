// The log of a program: one line per event, in a file or on standard error. All programs of trainyard write
// one. It is not evidence: no command computes anything from it. If the disk is full or fails, lines are lost
// and nothing else.
//
//   2026-11-23T02:12:55.123Z info 4711 launched run=3f9a… attempt=1 label="mlp ddp seed 0"
//
// UTC, level, process id, the event in plain words, then what is known of it. A value with a space is quoted,
// control characters are escaped: an event is one line whatever texts of others it names. Until `File` or
// `to_standard_error` nothing is written anywhere. No line is written in a timed region.
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

// The words that a user may write: "trace, debug, info, warning, error, off".
std::string level_words();

std::optional<Level> level_named(std::string_view text);

// TRAINYARD_LOG says the level of every program; ranks get it by their environment.
inline constexpr const char* level_variable = "TRAINYARD_LOG";

// The level that the variable names; info if it is unset or empty. UserError if it names no level.
Level level_from_environment();

// Sets the variable, for the processes that this one starts.
void pass_on(Level level);

// One thing that is known of an event.
struct Field {
  Field(std::string_view field, std::string text) : name(field), value(std::move(text)) {}
  Field(std::string_view field, std::string_view text) : name(field), value(text) {}
  Field(std::string_view field, const char* text) : name(field), value(text) {}
  Field(std::string_view field, const std::filesystem::path& path) : name(field), value(path.string()) {}
  Field(std::string_view field, double number);  // six digits
  template <std::integral Number>
  Field(std::string_view field, Number number) : name(field), value(std::to_string(number)) {}

  std::string name;
  std::string value;
};
using Fields = std::vector<Field>;

// What follows level and process id in a line.
std::string text_of(std::string_view event, const Fields& fields);

// A file that this program appends to while the object lives. At 5 MB `trainyard.log` becomes
// `trainyard.1.log` and that `trainyard.2.log`; older lines are lost. Children do not inherit it. Where the
// file cannot be opened, or is a link or no plain file, nothing is logged. Not for several threads to open
// and close.
class File {
 public:
  File(const std::filesystem::path& file, Level level);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

inline constexpr std::size_t largest_file = 5'000'000;  // bytes, then another is begun
inline constexpr std::size_t older_files = 2;

// From here on to the end of the process.
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

// The level of a line of such a log; nothing for any other line.
std::optional<Level> level_of_line(std::string_view line);

}  // namespace trainyard::log
