#include "orchestrator/spool_tail.h"

#include <array>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainyard::orchestrator {

namespace {

// −1 for what is no plain file: a link may point anywhere, and a pipe would be waited for.
int open_plain(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat status {};
  if (fd < 0 || (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

SpoolTail::SpoolTail(std::filesystem::path file) : file_(std::move(file)) {}

SpoolTail::~SpoolTail() {
  if (fd_ >= 0) ::close(fd_);
}

SpoolTail::SpoolTail(SpoolTail&& other) noexcept
    : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)), partial_(std::move(other.partial_)) {}

std::vector<std::string> SpoolTail::new_lines() {
  std::vector<std::string> lines;
  if (fd_ < 0) fd_ = open_plain(file_);
  if (fd_ < 0) return lines;
  std::array<char, 65536> buffer;
  for (ssize_t size = 0; (size = ::read(fd_, buffer.data(), buffer.size())) > 0;)
    partial_.append(buffer.data(), static_cast<std::size_t>(size));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(partial_.substr(start, end - start));
  partial_.erase(0, start);
  return lines;
}

}  // namespace trainyard::orchestrator
