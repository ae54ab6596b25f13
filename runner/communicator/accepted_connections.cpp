#include "runner/communicator/accepted_connections.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sockets/peer_user.h"

namespace {

using namespace trainyard;

// Whether code of NCCL is at `caller`.
bool is_in_nccl(const void* caller) {
  Dl_info found{};
  return ::dladdr(caller, &found) != 0 && found.dli_fname != nullptr &&
         std::filesystem::path(found.dli_fname).filename().string().starts_with("libnccl");
}

// NCCL's ranks connect, send, and close at once. So the peer can be gone before its user is known. NCCL itself refuses a
// connection that does not begin with 64 random bits, which only the ranks know.
int accept_checked(int listening, sockaddr* address, socklen_t* size, int flags, const void* caller) {
  const Closed closed = is_in_nccl(caller) ? Closed::as_own : Closed::as_of_another;
  const socklen_t room = size == nullptr ? 0 : *size;
  while (true) {
    if (size != nullptr) *size = room;
    FileDescriptor connection(
        static_cast<int>(::syscall(SYS_accept4, listening, address, size, flags)));  // errno stays
    if (!connection || !from_other_user(connection.get(), closed)) return connection.release();
    log::debug("connection of another user refused");
  }
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int accept4(int listening, sockaddr* address, socklen_t* size,
                                                   int flags) {
  return accept_checked(listening, address, size, flags, __builtin_return_address(0));
}

__attribute__((visibility("default"))) int accept(int listening, sockaddr* address, socklen_t* size) {
  return accept_checked(listening, address, size, 0, __builtin_return_address(0));
}

}  // extern "C"

namespace trainyard::runner {

namespace {

void require(int result, const char* action) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), action);
}

// Whether a connection of this process to itself is accepted. Those of strangers that come first are refused.
// std::system_error if a system call fails: that says nothing about users.
bool host_names_users() {
  std::uint16_t port = 0;
  const FileDescriptor listening = listen_on_loopback(port);
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(client.get(), "a socket for 127.0.0.1");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
          "connecting to 127.0.0.1");
  // Else `accept4` would wait if it refuses the connection.
  require(::fcntl(listening.get(), F_SETFL, O_NONBLOCK), "fcntl");
  const FileDescriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted && errno != EAGAIN) require(-1, "accepting a connection on 127.0.0.1");
  return static_cast<bool>(accepted);
}

}  // namespace

FileDescriptor listen_on_loopback(std::uint16_t& port) {
  const auto check = [](int result) { require(result, "listening on 127.0.0.1"); };
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(fd.get());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  check(::bind(fd.get(), any, size));
  check(::listen(fd.get(), SOMAXCONN));
  check(::getsockname(fd.get(), any, &size));
  port = ntohs(address.sin_port);
  return fd;
}

void require_checked_accept() {
  if (::dlsym(RTLD_DEFAULT, "accept") != reinterpret_cast<void*>(&::accept) ||
      ::dlsym(RTLD_DEFAULT, "accept4") != reinterpret_cast<void*>(&::accept4))
    throw InternalError(
        "this program does not export its own accept, so other users could connect to its ports");
  if (!host_names_users())
    throw UserError("this host does not say which user owns a local connection",
                    "allow netlink sockets (sock_diag), or mount /proc");
}

}  // namespace trainyard::runner
