#include "base/sockets/loopback.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/sockets/peer_user.h"

namespace trainyard {

namespace {

void require(int result, const char* action) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), action);
}

sockaddr_in loopback_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Whether a connection of this process to itself is known as its own. Those of strangers that come first are refused.
bool host_names_users() {
  std::uint16_t port = 0;
  const FileDescriptor listening = listen_on_loopback(port);
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(client.get(), "a socket for 127.0.0.1");
  const sockaddr_in address = loopback_address(port);
  require(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connecting to 127.0.0.1");
  require(::fcntl(listening.get(), F_SETFL, O_NONBLOCK), "fcntl");
  while (true) {
    const FileDescriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted && !from_other_user(accepted.get())) return true;
    if (accepted) continue;
    if (errno != EAGAIN) require(-1, "accepting a connection on 127.0.0.1");
    return false;
  }
}

}  // namespace

FileDescriptor listen_on_loopback(std::uint16_t& port) {
  const auto check = [](int result) { require(result, "listening on 127.0.0.1"); };
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(fd.get());
  sockaddr_in address = loopback_address(0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  check(::bind(fd.get(), any, size));
  check(::listen(fd.get(), SOMAXCONN));
  check(::getsockname(fd.get(), any, &size));
  port = ntohs(address.sin_port);
  return fd;
}

void require_known_users() {
  if (!host_names_users())
    throw UserError("this host does not say which user owns a local connection",
                    "allow netlink sockets (sock_diag), or mount /proc");
}

void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace trainyard
