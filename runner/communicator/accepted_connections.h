// Connections that this process accepts, also inside LibTorch: those of other users of this host are refused.
//
// - This program has its own `accept` and `accept4`. They close a connection that comes from this host and from
//   another user, before a byte of it is read, and continue with the next one. So TCPStore, Gloo and NCCL never
//   see it. Connections from other hosts pass, and those to NCCL whose peer has closed.
// - The dynamic linker prefers a function of the program to that of libc. TCPStore has no hook for this, and a
//   proxy in front of it would leave the port of the store itself open.
// - On a blocking socket, `accept` waits for the next connection if it refuses one, even after poll(2). An error
//   instead would end TCPStore, Gloo and NCCL. Gloo and TCPStore listen on sockets that do not block.
// - Thread safety: like accept(2).
#pragma once

namespace trainyard::runner {

// Called before anything listens.
// - InternalError if LibTorch would call other functions, for example in a program that was linked differently.
// - UserError if this host does not say which user owns a connection. Then all of them would be refused.
// - std::system_error if a system call fails, for example because too many files are open.
void require_checked_accept();

}  // namespace trainyard::runner
