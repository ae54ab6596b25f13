// A library with a name like NCCL's that accepts a connection.
#include <sys/socket.h>

extern "C" int fake_nccl_accept(int listening) {
  const int connection = ::accept(listening, nullptr, nullptr);
  return connection < 0 ? -1
                        : connection;  // as in NCCL the call is not the last, so its caller is this library
}
