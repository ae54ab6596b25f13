#include "base/error.h"

namespace trainyard {

namespace {

std::string message_with(const std::string& message, const std::string& advice, const Location& location) {
  std::string text = to_text(location);
  if (!text.empty()) text += ": ";
  text += message;
  if (advice.empty()) return text;
  return text + (advice.starts_with("; ") ? advice : "; " + advice);
}

}  // namespace

std::string to_text(const Location& location) {
  if (location.file.empty()) return "";
  std::string text = location.file;
  if (location.line > 0) {
    text += ":" + std::to_string(location.line);
    if (location.column > 0) text += ":" + std::to_string(location.column);
  }
  return text;
}

UserError::UserError(const std::string& message, const std::string& advice, const Location& location)
    : std::runtime_error(message_with(message, advice, location)) {}

std::string to_text(const Problem& problem) {
  const std::string place = to_text(problem.location);
  return (place.empty() ? "" : place + ": ") + (problem.warning ? "warning: " : "error: ") + problem.message;
}

}  // namespace trainyard
