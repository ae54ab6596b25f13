// Ports of the loopback interface, which every user of the host can connect to.
#pragma once

#include <cstdint>

#include "base/fd.h"

namespace trainyard {

// A non-blocking socket that listens on a free port of 127.0.0.1. std::system_error if a system call fails.
FileDescriptor listen_on_loopback();

// The port that a TCP socket is bound to. std::system_error if the system call fails.
std::uint16_t port_of(int socket);

// UserError if this host does not say which user owns a connection. Then connections of other users could not be told apart.
// std::system_error if a system call fails, for example because too many files are open.
void require_known_users();

// As many open files as the system allows. The usual limit of 1,024 would end the rendezvous of many ranks.
void allow_many_connections();

}  // namespace trainyard
