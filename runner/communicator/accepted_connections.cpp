#include "runner/communicator/accepted_connections.h"

#include <filesystem>

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sockets/loopback.h"
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

void require_checked_accept() {
  if (::dlsym(RTLD_DEFAULT, "accept") != reinterpret_cast<void*>(&::accept) ||
      ::dlsym(RTLD_DEFAULT, "accept4") != reinterpret_cast<void*>(&::accept4))
    throw InternalError(
        "this program does not export its own accept, so other users could connect to its ports");
  require_known_users();
}

}  // namespace trainyard::runner
