#include "orchestrator/rank/log_limit.h"

#include <algorithm>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "experiments/protocol/record.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

// Bytes on disk: a file with a hole is larger, but the hole costs nothing.
std::uintmax_t bytes_of(const struct stat& status) {
  constexpr std::uintmax_t block = 512;
  return std::min(static_cast<std::uintmax_t>(status.st_size),
                  static_cast<std::uintmax_t>(status.st_blocks) * block);
}

fs::path older(const fs::path& log) {
  fs::path file = log;
  return file.replace_extension(".1" + log.extension().string());
}

// Best effort: a full disk loses lines of a log.
void keep_last(int log, std::uintmax_t size, std::uintmax_t limit, const fs::path& file) {
  std::error_code none;
  fs::remove(file, none);
  const auto kept = FileDescriptor::open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!kept) return;
  auto offset = static_cast<off_t>(size - limit);
  for (std::uintmax_t left = limit; left > 0;) {
    const ssize_t sent = ::sendfile(kept.get(), log, &offset, left);
    if (sent <= 0) return;
    left -= static_cast<std::uintmax_t>(sent);
  }
}

}  // namespace

bool shorten_log(const fs::path& log, std::uintmax_t limit) {
  struct stat status {};
  if (::lstat(log.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || bytes_of(status) <= limit)
    return false;
  const auto fd = FileDescriptor::open(log, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  keep_last(fd.get(), static_cast<std::uintmax_t>(status.st_size), limit, older(log));
  if (::ftruncate(fd.get(), 0) != 0) return false;
  // The form of a line that trainyard logs: such a line is never taken for the cause of a failure.
  const std::string line = fmt::format(
      "{} info {} {}\n", experiments::utc_now(), ::getpid(),
      log::text_of("log shortened", {{"largest_bytes", limit}, {"earlier", older(log).filename()}}));
  return ::write(fd.get(), line.data(), line.size()) >= 0;
}

}  // namespace trainyard::orchestrator
