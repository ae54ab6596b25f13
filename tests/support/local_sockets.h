// TCP sockets of tests on the loopback interface, also as another user.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
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

// Numeric addresses of a connection.
struct Addresses {
  const char* from = "127.0.0.1";
  const char* to = "127.0.0.1";
};

// Only system calls: a child of a program with threads uses it too. Negative if nobody listens.
inline int connect_to_port(int port, const Addresses& addresses = {}) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in from = loopback_address(0), to = loopback_address(port);
  ::inet_pton(AF_INET, addresses.from, &from.sin_addr);
  ::inet_pton(AF_INET, addresses.to, &to.sin_addr);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
      ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0)
    return fd;
  ::close(fd);
  return -1;
}

inline FileDescriptor connection_to(int port) {
  FileDescriptor fd(connect_to_port(port));
  REQUIRE(fd);
  return fd;
}

inline FileDescriptor connected_between(const char* from, const char* to, int port) {
  return FileDescriptor(connect_to_port(port, {from, to}));
}

struct ListeningSocket {
  explicit ListeningSocket(in_addr_t interface = INADDR_LOOPBACK)
      : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback_address(0);
    address.sin_addr.s_addr = htonl(interface);
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
  ConnectionsOfNobody(int port, int count, const Addresses& addresses = {}) {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {  // only system calls, because other threads may hold locks
      ::close(pipe[0]);
      bool good = ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the test is killed
      int last = -1;
      for (int i = 0; good && i < count; ++i) good = (last = connect_to_port(port, addresses)) >= 0;
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

// Runs `action` in a network of its own with the addresses 10.1.1.1 and 10.1.1.2. False if that is not allowed.
inline bool in_own_network(const std::function<void()>& action) {
  bool done = false;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    const FileDescriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    for (const char* name : {"lo", "lo:1", "lo:2"}) {
      ifreq request{};
      std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
      auto& address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
      address.sin_family = AF_INET;
      const std::string number =
          std::string(name) == "lo" ? "127.0.0.1" : "10.1.1." + std::string(1, name[3]);
      ::inet_pton(AF_INET, number.c_str(), &address.sin_addr);
      if (::ioctl(fd.get(), SIOCSIFADDR, &request) != 0) return;
      request.ifr_flags = IFF_UP;
      ::ioctl(fd.get(), SIOCSIFFLAGS, &request);
    }
    action();
    done = true;
  }).join();
  return done;
}

}  // namespace trainyard::tests
