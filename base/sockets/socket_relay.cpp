#include "base/sockets/socket_relay.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/sockets/loopback.h"

namespace trainyard {

namespace {

constexpr std::ptrdiff_t most_waiting = 512;
constexpr std::size_t buffer_size = std::size_t{64} << 10;
constexpr auto no_descriptors_nap = std::chrono::milliseconds(100);

void send_at_once(int connection) {
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// False if the connection is broken.
bool send_all(int to, const char* bytes, ssize_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(to, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes += sent;
    size -= sent;
  }
  return true;
}

// Copies until `from` has closed its half, and closes that half of `to`. If one end is broken, closes both.
void copy_all(int from, int to) {
  std::string part(buffer_size, '\0');
  ssize_t size = 0;
  bool sound = true;
  while (sound && (size = ::recv(from, part.data(), part.size(), 0)) > 0)
    sound = send_all(to, part.data(), size);
  sound = sound && size == 0;
  ::shutdown(to, sound ? SHUT_WR : SHUT_RDWR);
  if (!sound) ::shutdown(from, SHUT_RDWR);
}

}  // namespace

SocketRelay::SocketRelay(FileDescriptor listening, Door door)
    : port_(port_of(listening.get())), listening_(std::move(listening)), door_(std::move(door)) {
  // Its threads must not get the signals that the process waits for.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { accept_all(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SocketRelay::~SocketRelay() {
  ::shutdown(listening_.get(), SHUT_RDWR);
  thread_.join();
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const Connection& each : connections_) {
      ::shutdown(each.near.get(), SHUT_RDWR);
      ::shutdown(each.far.get(), SHUT_RDWR);
    }
  }
  connections_.clear();
}

void SocketRelay::accept_all() {
  while (true) {
    pollfd polled{listening_.get(), POLLIN, 0};
    ::poll(&polled, 1, -1);
    FileDescriptor near(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (near)
      begin(std::move(near));
    else if (errno == EINVAL)  // the destructor has shut the socket down
      return;
    else if (errno == EMFILE || errno == ENFILE)
      std::this_thread::sleep_for(no_descriptors_nap);
  }
}

// Without memory for a thread, the connection is refused.
void SocketRelay::begin(FileDescriptor near) {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](const Connection& each) { return !each.near; });
  if (std::ranges::count(connections_, true, &Connection::waits) >= most_waiting) {
    const auto oldest = std::ranges::find(connections_, true, &Connection::waits);
    ::shutdown(oldest->near.get(), SHUT_RDWR);
    oldest->waits = false;
  }
  Connection& connection = connections_.emplace_back();
  connection.near = std::move(near);
  try {
    connection.thread = std::jthread([this, &connection] { serve(connection); });
  } catch (const std::system_error&) {
    connections_.pop_back();
  }
}

void SocketRelay::serve(Connection& connection) {
  const int near = connection.near.get();
  send_at_once(near);
  FileDescriptor opened = door_(near);
  const int far = opened.get();
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) connection.far = std::move(opened);
    connection.waits = false;
  }
  if (connection.far) {
    send_at_once(far);
    ::fcntl(far, F_SETFL, 0);  // it may be non-blocking
    try {
      const std::jthread back([=] { copy_all(far, near); });
      copy_all(near, far);
    } catch (const std::system_error&) {  // no memory for a thread
    }
  }
  const std::lock_guard lock(mutex_);
  connection.near.reset();
  connection.far.reset();
}

bool send_now(int connection, const std::string& bytes) {
  return ::send(connection, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace trainyard
