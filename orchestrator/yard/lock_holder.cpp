#include "orchestrator/yard/lock_holder.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <sstream>

#include <pwd.h>
#include <unistd.h>

#include "base/host.h"
#include "base/number.h"
#include "base/text.h"

namespace trainyard::orchestrator {

namespace {

constexpr std::size_t longest_line = 1000;
constexpr std::size_t longest_text = 8192;
constexpr std::string_view started = "started ";

std::string content_of(int fd) {
  std::string text(longest_text, '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

std::vector<std::string> printable_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(printable_line(line));
  return lines;
}

// N of the line "started N".
std::optional<std::uint64_t> started_at(std::string_view line) {
  if (!line.starts_with(started)) return std::nullopt;
  return parse_number<std::uint64_t>(line.substr(started.size()));
}

bool lives(int pid, std::uint64_t recorded) {
  if (const auto process = facts_of(pid)) return process->start_ticks == recorded;
  return ::kill(pid, 0) != 0 && errno == EPERM;  // the processes of other users are hidden
}

}  // namespace

bool write_holder(int fd, const std::vector<std::string>& about) {
  std::string text = std::to_string(::getpid()) + "\n";
  for (const std::string& line : about) text += printable_line(line).substr(0, longest_line) + "\n";
  text +=
      std::string(started) + std::to_string(facts_of(::getpid()).value_or(ProcessFacts{}).start_ticks) + "\n";
  if (::ftruncate(fd, 0) != 0) return false;
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
  if (written == static_cast<ssize_t>(text.size())) return true;
  const int error = written < 0 ? errno : ENOSPC;
  (void)!::ftruncate(fd, 0);  // a part of a text is not the text of a lock
  errno = error;
  return false;
}

std::optional<LockHolder> live_holder(int fd) {
  const std::vector<std::string> lines = printable_lines(content_of(fd));
  if (lines.size() < 2) return std::nullopt;
  const auto pid = parse_number<int>(lines.front());
  const auto recorded = started_at(lines.back());
  if (!pid || *pid <= 0 || !recorded || !lives(*pid, *recorded)) return std::nullopt;
  return LockHolder{*pid, {lines.begin() + 1, lines.end() - 1}};
}

std::string unknown_holder(const std::filesystem::path& file) {
  return "an unknown process (find it with `fuser " + file.string() + "`)";
}

bool is_lock_text(int fd, std::size_t about_lines) {
  const std::string text = content_of(fd);
  if (text.empty()) return true;
  if (text.size() >= longest_text || !text.ends_with('\n')) return false;
  const std::vector<std::string> lines = printable_lines(text);
  return lines.size() == about_lines + 2 && parse_number<int>(lines.front()) && started_at(lines.back());
}

std::string user_name(uid_t user) {
  std::array<char, 4096> memory{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, memory.data(), memory.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return "user " + std::to_string(user);
}

}  // namespace trainyard::orchestrator
