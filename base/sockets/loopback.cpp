#include "base/sockets/loopback.h"

#include <cerrno>
#include <system_error>

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
  const FileDescriptor listening = listen_on_loopback();
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(client.get(), "a socket for 127.0.0.1");
  const sockaddr_in address = loopback_address(port_of(listening.get()));
  require(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connecting to 127.0.0.1");
  while (true) {
    const FileDescriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted && !from_other_user(accepted.get())) return true;
    if (accepted) continue;
    if (errno != EAGAIN) require(-1, "accepting a connection on 127.0.0.1");
    return false;
  }
}

}  // namespace

FileDescriptor listen_on_loopback() {
  const auto check = [](int result) { require(result, "listening on 127.0.0.1"); };
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  check(fd.get());
  const sockaddr_in address = loopback_address(0);
  check(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
  check(::listen(fd.get(), SOMAXCONN));
  return fd;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  require(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), "the port of a socket");
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
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
