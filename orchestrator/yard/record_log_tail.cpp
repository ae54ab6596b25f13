#include "orchestrator/yard/record_log_tail.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainyard::orchestrator {

namespace {

constexpr auto hole_patience = std::chrono::seconds(3);

// Opens a plain file. Empty for anything else: a link may point anywhere, and reading a pipe would block.
FileDescriptor open_plain(const std::filesystem::path& file) {
  auto fd = FileDescriptor::open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status {};
  if (fd && (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))) fd.reset();
  return fd;
}

}  // namespace

RecordLogTail::RecordLogTail(std::filesystem::path file, bool shared)
    : file_(std::move(file)), shared_(shared) {}

std::vector<std::string> RecordLogTail::new_lines() {
  std::vector<std::string> lines;
  if (!fd_) fd_ = open_plain(file_);
  if (!fd_) return lines;
  read_rest();
  std::size_t start = 0;
  for (std::size_t end = 0; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(partial_.substr(start, end - start));
  partial_.erase(0, start);
  return lines;
}

void RecordLogTail::read_rest() {
  std::array<char, 65536> buffer;
  std::string bytes;
  if (shared_) ::lseek(fd_.get(), offset_, SEEK_SET);
  for (ssize_t size = 0; (size = ::read(fd_.get(), buffer.data(), buffer.size())) > 0;)
    (shared_ ? bytes : partial_).append(buffer.data(), static_cast<std::size_t>(size));
  if (!shared_) return;
  take_before_hole(bytes);
  fd_.reset();
}

// A hole that stays counts as damage of its line.
void RecordLogTail::take_before_hole(const std::string& bytes) {
  const auto now = std::chrono::steady_clock::now();
  const auto hole = std::min(bytes.find('\0'), bytes.size());
  if (hole == bytes.size())
    hole_since_ = {};
  else if (hole_since_ == std::chrono::steady_clock::time_point())
    hole_since_ = now;
  const bool stays = hole < bytes.size() && now - hole_since_ > hole_patience;
  const auto taken = stays ? bytes.size() : hole;
  partial_.append(bytes, 0, taken);
  offset_ += static_cast<std::int64_t>(taken);
}

}  // namespace trainyard::orchestrator
