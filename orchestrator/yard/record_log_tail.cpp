#include "orchestrator/yard/record_log_tail.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/plain_file.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto hole_patience = std::chrono::seconds(3);

// Empty if it is missing or not a plain file. A link may point anywhere.
FileDescriptor opened(const std::filesystem::path& file) {
  return std::move(open_plain(file, O_RDONLY | O_NOFOLLOW).fd);
}

}  // namespace

RecordLogTail::RecordLogTail(std::filesystem::path file, bool shared)
    : file_(std::move(file)), shared_(shared) {}

std::vector<std::string> RecordLogTail::new_lines(std::size_t most_bytes) {
  std::vector<std::string> lines;
  at_end_ = true;
  if (too_long()) return lines;
  if (!fd_) fd_ = opened(file_);
  if (!fd_) return lines;
  read_some(most_bytes);
  while (auto line = lines_.next()) lines.push_back(*std::move(line));
  return lines;
}

void RecordLogTail::read_some(std::size_t most_bytes) {
  std::string bytes(most_bytes, '\0');
  std::size_t size = 0;
  at_end_ = false;
  while (!at_end_ && size < bytes.size()) {
    const ssize_t more =
        ::pread(fd_.get(), bytes.data() + size, bytes.size() - size, offset_ + static_cast<off_t>(size));
    if (more < 0 && errno == EINTR) continue;
    at_end_ = more <= 0;
    if (more > 0) size += static_cast<std::size_t>(more);
  }
  bytes.resize(size);
  const std::size_t taken = shared_ ? bytes_before_hole(bytes) : size;
  if (taken < size) at_end_ = true;  // the rest has not arrived yet
  lines_.add(std::string_view(bytes).substr(0, taken));
  offset_ += static_cast<std::int64_t>(taken);
  if (shared_) fd_.reset();
}

// The file is open for reading only, which is enough. If nothing can be written to its file system, nothing
// has to be synced.
void RecordLogTail::sync() const {
  const FileDescriptor again = fd_ ? FileDescriptor() : opened(file_);
  const int fd = fd_ ? fd_.get() : again.get();
  if (fd < 0) return;
  if (::fdatasync(fd) != 0 && errno != EROFS && errno != EINVAL) throw_file_error(file_);
}

// All bytes if a hole stays: then it counts as damage of its line.
std::size_t RecordLogTail::bytes_before_hole(const std::string& bytes) {
  const auto now = std::chrono::steady_clock::now();
  const auto hole = std::min(bytes.find('\0'), bytes.size());
  if (hole == bytes.size())
    hole_since_ = {};
  else if (hole_since_ == std::chrono::steady_clock::time_point())
    hole_since_ = now;
  const bool stays = hole < bytes.size() && now - hole_since_ > hole_patience;
  return stays ? bytes.size() : hole;
}

}  // namespace trainyard::orchestrator
