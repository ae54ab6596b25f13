// The user at the other end of a connection within this host.
#include "base/sockets/peer_user.h"

#include <array>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/support/local_sockets.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using tests::connection_to;
using tests::ListeningSocket;

namespace {

// A row of /proc/net/tcp: 127.0.0.1:4711 is connected to 127.0.0.1:29500.
std::string row(const std::string& state, const std::string& user, const std::string& inode) {
  return "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
         "   0: 0100007F:1267 0100007F:733C " +
         state + " 00000000:00000000 00:00000000 00000000 " + user + " 0 " + inode +
         " 2 00000000fbeae8fe 20 0 0 10 -1\n";
}

SocketEnds ends_in_row() {
  const ListeningSocket server;
  const FileDescriptor client = connection_to(server.port);
  SocketEnds ends = ends_of(client.get()).value();
  ends.own.port = 29500;
  ends.peer.port = 4711;
  return ends;
}

}  // namespace

TEST_CASE("the peer of a connection within this host is this user") {
  const ListeningSocket server;
  const FileDescriptor client = connection_to(server.port);
  const FileDescriptor accepted(::accept(server.fd.get(), nullptr, nullptr));
  const auto ends = ends_of(accepted.get());
  REQUIRE(ends);
  CHECK(ends->within_host());
  CHECK(ends->own.address_text() == "127.0.0.1");
  CHECK(ends->own.port == server.port);
  CHECK(peer_user(*ends) == ::geteuid());
  CHECK_FALSE(from_other_user(accepted.get()));
}

TEST_CASE("a connection of another user of this host is from another user") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  const ListeningSocket server;
  const tests::ConnectionsOfNobody nobody(server.port, 1);
  const FileDescriptor accepted(::accept(server.fd.get(), nullptr, nullptr));
  const auto ends = ends_of(accepted.get());
  REQUIRE(ends);
  CHECK(peer_user(*ends) == tests::nobody);
  CHECK(from_other_user(accepted.get()));
  CHECK(from_other_user(accepted.get(), Closed::as_own));
}

TEST_CASE("another user who connects one address of this host to another one is from another user") {
  bool nobody_is_other = false, own_is_other = true, same_address = true;
  const bool tried = tests::in_own_network([&] {
    if (::geteuid() != 0) return;
    const ListeningSocket server(INADDR_ANY);
    const tests::ConnectionsOfNobody nobody(server.port, 1, {"10.1.1.2", "10.1.1.1"});
    const FileDescriptor first(::accept(server.fd.get(), nullptr, nullptr));
    nobody_is_other = from_other_user(first.get());
    same_address = ends_of(first.get())->within_host();
    const FileDescriptor client = tests::connected_between("10.1.1.2", "10.1.1.1", server.port);
    const FileDescriptor second(::accept(server.fd.get(), nullptr, nullptr));
    own_is_other = from_other_user(second.get());
  });
  if (!tried || ::geteuid() != 0) {
    MESSAGE("skipped: only root can make a network and become another user");
    return;
  }
  CHECK_FALSE(same_address);
  CHECK(nobody_is_other);
  CHECK_FALSE(own_is_other);
}

TEST_CASE("a socket that listens on the port of a closed peer is not taken for the peer") {
  const ListeningSocket server;
  FileDescriptor client = connection_to(server.port);
  const FileDescriptor accepted(::accept(server.fd.get(), nullptr, nullptr));
  const SocketEnds ends = ends_of(accepted.get()).value();
  REQUIRE(peer_user(ends) == ::geteuid());
  const linger at_once{1, 0};  // close resets the connection, so its port is free
  REQUIRE(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  client.reset();
  const FileDescriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = tests::loopback_address(ends.peer.port);
  REQUIRE(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listening.get(), 1) == 0);
  CHECK_FALSE(peer_user(ends));
}

TEST_CASE("a connection that its other end has closed belongs to nobody known") {
  const ListeningSocket server;
  {
    const FileDescriptor client = connection_to(server.port);
    REQUIRE(::send(client.get(), "SET", 3, 0) == 3);
  }
  const FileDescriptor accepted(::accept(server.fd.get(), nullptr, nullptr));
  CHECK(from_other_user(accepted.get()));
  CHECK_FALSE(from_other_user(accepted.get(), Closed::as_own));
}

TEST_CASE("a Unix socket and a pipe are not connections of another user") {
  std::array<int, 2> pair{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
  const FileDescriptor one(pair[0]), two(pair[1]);
  CHECK_FALSE(from_other_user(one.get()));
  CHECK_FALSE(ends_of(one.get()));
}

TEST_CASE("the user in /proc/net/tcp is that of the same two ends, if a process has the socket open") {
  const SocketEnds ends = ends_in_row();
  CHECK(user_in_table(row("01", "65534", "77"), ends) == 65534);
  CHECK(user_in_table(row("05", "1000", "77"), ends) == 1000);  // half closed
  CHECK_FALSE(user_in_table(row("05", "0", "0"), ends));        // closed: the kernel shows root
  SocketEnds other = ends;
  other.peer.port = 4712;
  CHECK_FALSE(user_in_table(row("01", "65534", "77"), other));
  CHECK_FALSE(user_in_table("", ends));
  CHECK_FALSE(user_in_table("0: x:y z 01\n", ends));
}

TEST_CASE("the live tables of /proc/net name the same user as the kernel's answer") {
  const ListeningSocket server;
  const FileDescriptor client = connection_to(server.port);
  const FileDescriptor accepted(::accept(server.fd.get(), nullptr, nullptr));
  CHECK(user_in_table(tests::read_text("/proc/net/tcp"), ends_of(accepted.get()).value()) == ::geteuid());
}
