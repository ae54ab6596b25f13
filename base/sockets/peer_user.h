// The user at the other end of a TCP connection within this host.
//
// A port of the loopback interface is open to every user of the host, and TCP names no user. But the kernel
// knows the owner of each socket. This code gets it by netlink (`sock_diag`), or from /proc/net/tcp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <netinet/in.h>
#include <sys/types.h>

namespace trainyard {

// One end of a connection. An IPv4 address is stored as IPv6, "::ffff:127.0.0.1".
struct SocketEnd {
  in6_addr address{};
  std::uint16_t port = 0;

  bool operator==(const SocketEnd& other) const;
  bool has_address_of(const SocketEnd& other) const;
  bool is_loopback() const;
  std::string address_text() const;  // "127.0.0.1", "fe80::1"
};

// The ends of a TCP connection. Empty if `connection` is not one.
struct SocketEnds {
  SocketEnd own, peer;
  // Whether the addresses alone show that both ends are on this host: one is a loopback address, or they have the
  // same address. A program of this host can also connect one address of the host to another one.
  bool within_host() const { return own.is_loopback() || peer.is_loopback() || own.has_address_of(peer); }
};
std::optional<SocketEnds> ends_of(int connection);

// The user who owns the socket at `ends.peer`. Empty if there is no such socket, or if its process has closed it:
// then its owner is not known any more.
std::optional<uid_t> peer_user(const SocketEnds& ends);

// How to treat a connection that its peer has closed: the kernel no longer knows its user.
enum class Closed { as_of_another, as_own };

// Whether a connection comes from this host, but not certainly from the effective user of this process. False
// for a connection from another host, and for other kinds of sockets. The kernel answers this for each connection.
bool from_other_user(int connection, Closed closed = Closed::as_of_another);

// `peer_user` from the text of /proc/net/tcp or /proc/net/tcp6.
std::optional<uid_t> user_in_table(const std::string& table, const SocketEnds& ends);

}  // namespace trainyard
