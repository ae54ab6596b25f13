#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <sstream>

#include "orchestrator/sweep/collector.h"

namespace trainyard::orchestrator {

namespace {

constexpr std::streamoff tail_bytes = 65536;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool looks_like_an_error(const std::string& line) {
  static constexpr std::array<const char*, 9> words{"error",  "exception", "what():", "fatal", "abort",
                                                    "assert", "terminate", "killed",  "cannot"};
  const std::string text = lower(line);
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

}  // namespace

// The last line of `log` that is wanted.
template <typename Wanted>
static std::optional<std::string> last_of(const std::filesystem::path& log, Wanted&& wanted) {
  std::ifstream stream(log, std::ios::binary | std::ios::ate);
  if (!stream) return std::nullopt;
  stream.seekg(std::max<std::streamoff>(0, static_cast<std::streamoff>(stream.tellg()) - tail_bytes));
  std::optional<std::string> last;
  for (std::string line; std::getline(stream, line);)
    if (wanted(line)) last = trimmed(line);
  return last;
}

std::optional<std::string> last_error_line(const std::filesystem::path& log) {
  return last_of(log, looks_like_an_error);
}

std::optional<std::string> last_line(const std::filesystem::path& log) {
  auto line = last_of(log, [](const std::string& each) {
    return std::any_of(each.begin(), each.end(), [](unsigned char c) { return c > 0x7f || std::isgraph(c); });
  });
  if (line) line = trimmed(line->substr(line->rfind('\r') + 1));  // npos + 1 is 0
  return line;
}

}  // namespace trainyard::orchestrator
