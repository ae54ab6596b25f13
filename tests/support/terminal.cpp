#include "tests/support/terminal.h"

#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include <doctest/doctest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/patience.h"

namespace trainyard::e2e {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int moment_milliseconds = 20;

Clock::time_point end_of_patience() {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(tests::patience));
}

}  // namespace

bool has_terminals() {
  int fd = -1, other = -1;
  if (::openpty(&fd, &other, nullptr, nullptr, nullptr) != 0) {
    MESSAGE("skipped: no pseudo-terminal is available");
    return false;
  }
  ::close(fd);
  ::close(other);
  return true;
}

Terminal::Terminal(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                   const std::string& program) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const winsize size{24, 80, 0, 0};
  pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
  if (pid_ < 0) throw std::runtime_error("no pseudo-terminal");
  if (pid_ > 0) return;
  ::setenv("TRAINYARD_HOST_LOCK", folder.c_str(), 1);
  ::setenv("TRAINYARD_OTHERS_LIMIT", "1000", 1);
  if (::chdir(folder.c_str()) == 0) ::execv(argv.front(), argv.data());
  ::_exit(127);
}

Terminal::~Terminal() {
  ::close(fd_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Terminal::read() {
  pollfd polled{fd_, POLLIN, 0};
  if (::poll(&polled, 1, moment_milliseconds) != 1) return true;
  std::array<char, 4096> bytes{};
  const ssize_t size = ::read(fd_, bytes.data(), bytes.size());
  if (size <= 0) return false;  // EIO: every process has closed the terminal, and all output was read
  output_.append(bytes.data(), static_cast<std::size_t>(size));
  return true;
}

bool Terminal::shows(const std::string& text) {
  const auto until = end_of_patience();
  while (output_.find(text) == std::string::npos) {
    if (Clock::now() > until) return false;
    read();
  }
  return true;
}

void Terminal::type(const std::string& keys) const {
  if (::write(fd_, keys.data(), keys.size()) < 0) throw std::runtime_error("the terminal has gone");
}

int Terminal::wait() {
  const auto until = end_of_patience();
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > until) return -1;
    read();
  }
  pid_ = -1;
  while (read() && Clock::now() < until) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace trainyard::e2e
