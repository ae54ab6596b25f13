#include "orchestrator/yard/lock_holder.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <sstream>

#include <pwd.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

namespace trainyard::orchestrator {

namespace {

constexpr std::size_t longest_line = 1000;
constexpr std::size_t longest_text = 8192;
constexpr std::string_view started = "started ";

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string content_of(int fd) {
  std::string text(longest_text, '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// Start time of a process in ticks since boot: field 22 of /proc/PID/stat. Empty if there is no such process,
// or if this user may not see it.
std::optional<std::uint64_t> start_ticks(int pid) {
  const std::string stat = whole_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');  // the name can hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state, field;
  fields >> state;
  for (int place = 4; place <= 22; ++place) fields >> field;
  return state == "Z" || state == "X" ? std::nullopt : number(field);
}

// `recorded`: empty for a file of an earlier release.
bool lives(int pid, std::optional<std::uint64_t> recorded) {
  if (const auto ticks = start_ticks(pid)) return !recorded || ticks == recorded;
  return ::kill(pid, 0) != 0 && errno == EPERM;  // the processes of other users are hidden
}

}  // namespace

bool write_holder(int fd, const std::vector<std::string>& about) {
  std::string text = std::to_string(::getpid()) + "\n";
  for (const std::string& line : about) text += printable_line(line).substr(0, longest_line) + "\n";
  text += std::string(started) + std::to_string(start_ticks(::getpid()).value_or(0)) + "\n";
  return ::ftruncate(fd, 0) == 0 &&
         ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

std::optional<LockHolder> live_holder(int fd) {
  std::istringstream text(content_of(fd));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(printable_line(line));
  if (lines.size() < 2) return std::nullopt;
  const auto pid = number(lines.front());
  if (!pid || *pid == 0 || *pid > INT32_MAX) return std::nullopt;
  LockHolder holder{static_cast<int>(*pid), {lines.begin() + 1, lines.end()}};
  std::optional<std::uint64_t> recorded;
  holder.earlier_release = !lines.back().starts_with(started);
  if (!holder.earlier_release) {
    recorded = number(std::string_view(lines.back()).substr(started.size()));
    holder.about.pop_back();
    if (!recorded) return std::nullopt;
  }
  if (!lives(holder.pid, recorded)) return std::nullopt;
  return holder;
}

bool is_lock_text(int fd) {
  const std::string text = content_of(fd);
  const auto end = text.find('\n');
  return text.empty() || (text.size() < longest_text && end != std::string::npos &&
                          number(std::string_view(text).substr(0, end)).has_value());
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
