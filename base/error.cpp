#include "base/error.h"

#include <fmt/format.h>

namespace trainyard {

namespace {

std::string message_with(const std::string& message, const std::string& advice, const Location& location) {
  const std::string place = to_text(location);
  const bool separated = advice.empty() || advice.starts_with("; ");
  return fmt::format("{}{}{}{}{}", place, place.empty() ? "" : ": ", message, separated ? "" : "; ", advice);
}

}  // namespace

std::string to_text(const Location& location) {
  if (location.file.empty() || location.line <= 0) return location.file;
  if (location.column <= 0) return fmt::format("{}:{}", location.file, location.line);
  return fmt::format("{}:{}:{}", location.file, location.line, location.column);
}

UserError::UserError(const std::string& message, const std::string& advice, const Location& location)
    : std::runtime_error(message_with(message, advice, location)) {}

std::string to_text(const Problem& problem) {
  const std::string place = to_text(problem.location);
  return fmt::format("{}{}{}: {}", place, place.empty() ? "" : ": ", problem.warning ? "warning" : "error",
                     problem.message);
}

}  // namespace trainyard
