#include "runner/communicator/accepted_connections.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sockets/peer_user.h"

extern "C" {

__attribute__((visibility("default"))) int accept4(int listening, sockaddr* address, socklen_t* size,
                                                   int flags) {
  using namespace trainyard;
  const socklen_t room = size == nullptr ? 0 : *size;
  while (true) {
    if (size != nullptr) *size = room;
    FileDescriptor connection(
        static_cast<int>(::syscall(SYS_accept4, listening, address, size, flags)));  // errno stays
    if (!connection || !from_other_user(connection.get())) return connection.release();
    log::debug("connection of another user refused");
  }
}

__attribute__((visibility("default"))) int accept(int listening, sockaddr* address, socklen_t* size) {
  return accept4(listening, address, size, 0);
}

}  // extern "C"

namespace trainyard::runner {

void require_checked_accept() {
  if (::dlsym(RTLD_DEFAULT, "accept") != reinterpret_cast<void*>(&::accept) ||
      ::dlsym(RTLD_DEFAULT, "accept4") != reinterpret_cast<void*>(&::accept4))
    throw InternalError(
        "this program does not export its own accept, so other users could connect to its ports");
}

}  // namespace trainyard::runner
