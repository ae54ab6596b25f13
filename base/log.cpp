#include "base/log.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::log {

namespace {

constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warning", "error", "off"};

// Null until a log is opened.
std::shared_ptr<spdlog::logger>& current() {
  static std::shared_ptr<spdlog::logger> logger;
  return logger;
}

spdlog::level::level_enum spdlog_level(Level level) {
  static_assert(static_cast<int>(Level::error) == SPDLOG_LEVEL_ERROR);
  return level == Level::off ? spdlog::level::off : static_cast<spdlog::level::level_enum>(level);
}

// Each line is flushed at once, so that it is not lost if the process is killed.
void open(spdlog::sink_ptr sink, Level level) {
  auto logger = std::make_shared<spdlog::logger>("", std::move(sink));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %P %v",
                                                                    spdlog::pattern_time_type::utc, "\n"));
  logger->set_level(spdlog_level(level));
  logger->flush_on(spdlog::level::trace);
  logger->set_error_handler(
      [](const std::string&) {});  // the line is lost; by default spdlog prints to the terminal
  current() = std::move(logger);
}

// Refuse to open anything but a regular file, at first and after each rotation.
spdlog::file_event_handlers careful() {
  spdlog::file_event_handlers handlers;
  handlers.before_open = [](const spdlog::filename_t& file) {
    const auto status = std::filesystem::symlink_status(file);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      throw spdlog::spdlog_ex(file + " is not a regular file");
  };
  handlers.after_open = [](const spdlog::filename_t&, std::FILE* stream) {
    ::fcntl(::fileno(stream), F_SETFD, FD_CLOEXEC);
  };
  return handlers;
}

bool is_plain_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \"=") == std::string_view::npos;
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\\\"") : std::string(1, c);
  return result + "\"";
}

}  // namespace

std::string_view to_text(Level level) {
  return names.at(static_cast<std::size_t>(level));
}

std::string level_words() {
  return joined(names);
}

std::optional<Level> level_named(std::string_view text) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<Level>(i);
  return std::nullopt;
}

Level level_from_environment() {
  const char* value = std::getenv(level_variable);
  if (value == nullptr || *value == '\0') return Level::info;
  if (const auto level = level_named(value)) return *level;
  throw UserError(fmt::format("{} must be one of {}, but is \"{}\"", level_variable, level_words(),
                              printable_line(value)));
}

void pass_on(Level level) {
  ::setenv(level_variable, std::string(to_text(level)).c_str(), 1);
}

Field::Field(std::string_view field, double number) : name(field), value(fmt::format("{:.6g}", number)) {}

std::string text_of(std::string_view event, const Fields& fields) {
  std::string text = printable_line(event);
  for (const Field& field : fields) {
    const std::string value = printable_line(field.value);
    text += fmt::format(" {}={}", field.name, is_plain_word(value) ? value : in_quotes(value));
  }
  return text;
}

File::File(const std::filesystem::path& file, Level level) {
  if (level == Level::off) return;
  try {
    open(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(), largest_file, older_files,
                                                                false, careful()),
         level);
  } catch (const std::exception&) {  // best effort: nothing is logged
  }
}

File::~File() {
  current().reset();
}

void to_standard_error(Level level) {
  open(std::make_shared<spdlog::sinks::stderr_sink_mt>(), level);
}

void write(Level level, std::string_view event, const Fields& fields) noexcept {
  try {
    const auto& logger = current();
    if (logger && logger->should_log(spdlog_level(level)))
      logger->log(spdlog_level(level), spdlog::string_view_t(text_of(event, fields)));
  } catch (...) {  // best effort
  }
}

std::optional<Level> level_of_line(std::string_view line) {
  static const std::regex form(R"(^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\w+) \d)");
  std::cmatch found;
  const bool matches =
      std::regex_search(line.begin(), line.end(), found, form, std::regex_constants::match_continuous);
  return matches ? level_named(found.str(1)) : std::nullopt;
}

}  // namespace trainyard::log
