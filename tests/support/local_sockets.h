// TCP sockets of tests on the loopback interface, also as another user.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace trainyard::tests {

inline constexpr uid_t nobody = 65534;

inline sockaddr_in loopback_address(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Only system calls: a child of a program with threads uses it too. Negative if nobody listens.
inline int connect_to_port(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback_address(port);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

inline FileDescriptor connection_to(int port) {
  FileDescriptor fd(connect_to_port(port));
  REQUIRE(fd);
  return fd;
}

struct ListeningSocket {
  ListeningSocket() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback_address(0);
    socklen_t size = sizeof address;
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(fd.get(), SOMAXCONN) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
  }
  FileDescriptor fd;
  int port = 0;
};

// Whether the other end closes a connection within `milliseconds` without sending a byte.
inline bool closed_without_answer(int fd, int milliseconds = 10'000) {
  pollfd polled{fd, POLLIN, 0};
  if (::poll(&polled, 1, milliseconds) != 1) return false;
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

// Lets this process open `files` files. False if the hard limit is lower.
inline bool allow_open_files(rlim_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < files) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, files);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// A child process of the user `nobody` that opens connections to a port of this host and keeps them. Only root
// can make one.
class ConnectionsOfNobody {
 public:
  ConnectionsOfNobody(int port, int count) {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {  // only system calls, because other threads may hold locks
      ::close(pipe[0]);
      bool good = ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the test is killed
      int last = -1;
      for (int i = 0; good && i < count; ++i) good = (last = connect_to_port(port)) >= 0;
      char answer = good ? 'y' : 'n';
      (void)!::write(pipe[1], &answer, 1);
      answer = good && closed_without_answer(last) ? 'c' : 'o';
      (void)!::write(pipe[1], &answer, 1);
      while (true) ::pause();
    }
    ::close(pipe[1]);
    answers_ = FileDescriptor(pipe[0]);
    REQUIRE(next_answer() == 'y');
  }
  ~ConnectionsOfNobody() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ConnectionsOfNobody(const ConnectionsOfNobody&) = delete;
  ConnectionsOfNobody& operator=(const ConnectionsOfNobody&) = delete;

  // Whether the last connection is closed within 10 s without an answer.
  bool last_is_closed() { return next_answer() == 'c'; }

 private:
  char next_answer() {
    char answer = 0;
    return ::read(answers_.get(), &answer, 1) == 1 ? answer : '\0';
  }
  pid_t pid_ = -1;
  FileDescriptor answers_;
};

inline std::string text_of_file(const char* file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace trainyard::tests
