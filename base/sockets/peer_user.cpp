#include "base/sockets/peer_user.h"

#include <array>
#include <cstring>
#include <sstream>
#include <string_view>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/number.h"
#include "base/text.h"

namespace trainyard {

namespace {

bool is_ipv4(const in6_addr& address) {
  return IN6_IS_ADDR_V4MAPPED(&address);
}

in6_addr mapped(in_addr_t ipv4) {
  in6_addr address{};
  address.s6_addr[10] = address.s6_addr[11] = 0xff;
  std::memcpy(&address.s6_addr[12], &ipv4, sizeof ipv4);
  return address;
}

std::optional<SocketEnd> end_of(const sockaddr& socket) {
  if (socket.sa_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(socket);
    return SocketEnd{mapped(four.sin_addr.s_addr), ntohs(four.sin_port)};
  }
  if (socket.sa_family != AF_INET6) return std::nullopt;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(socket);
  return SocketEnd{six.sin6_addr, ntohs(six.sin6_port)};
}

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 body{};
};

void write_address(__be32 (&into)[4], const in6_addr& address) {
  if (is_ipv4(address))
    std::memcpy(&into[0], &address.s6_addr[12], sizeof into[0]);
  else
    std::memcpy(into, &address, sizeof into);
}

// Asks for the socket whose own end is the peer of `ends`.
Question question_about(const SocketEnds& ends) {
  Question question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = is_ipv4(ends.peer.address) ? AF_INET : AF_INET6;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~0U;
  auto& id = question.body.id;
  id.idiag_sport = htons(ends.peer.port);
  id.idiag_dport = htons(ends.own.port);
  write_address(id.idiag_src, ends.peer.address);
  write_address(id.idiag_dst, ends.own.address);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

// Whether the kernel answers about the socket of the question. If no connection has these ends, it answers with a
// socket that listens on the same port.
bool answers(const inet_diag_msg& socket, const Question& question) {
  const auto& asked = question.body.id;
  return socket.idiag_state != TCP_LISTEN && socket.id.idiag_sport == asked.idiag_sport &&
         socket.id.idiag_dport == asked.idiag_dport;
}

std::optional<uid_t> user_by_netlink(const SocketEnds& ends) {
  const FileDescriptor kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!kernel) return std::nullopt;
  const Question question = question_about(ends);
  if (::send(kernel.get(), &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question))
    return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  const ssize_t size = ::recv(kernel.get(), answer.data(), answer.size(), 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  nlmsghdr header{};
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;  // an error: there is no such socket
  inet_diag_msg socket{};
  std::memcpy(&socket, answer.data() + NLMSG_HDRLEN, sizeof socket);
  if (!answers(socket, question) || socket.idiag_inode == 0) return std::nullopt;  // no process has it open
  return socket.idiag_uid;
}

// /proc/net/tcp: addresses are words of 32 bits in the byte order of this host, as hexadecimal digits.

std::optional<SocketEnd> end_in(std::string_view text) {
  constexpr std::size_t word = 8;
  const auto colon = text.find(':');
  if (colon != word && colon != 4 * word) return std::nullopt;
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1), 16);
  if (!port) return std::nullopt;
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / word; ++i) {
    const auto number = parse_number<std::uint32_t>(text.substr(i * word, word), 16);
    if (!number) return std::nullopt;
    words[i] = *number;
  }
  SocketEnd end{mapped(words[0]), *port};
  if (colon != word) std::memcpy(&end.address, words.data(), sizeof end.address);
  return end;
}

std::optional<uid_t> ask_once(const SocketEnds& ends) {
  if (const auto user = user_by_netlink(ends)) return user;
  if (const auto user = user_in_table(whole_file("/proc/net/tcp"), ends)) return user;
  return user_in_table(whole_file("/proc/net/tcp6"), ends);
}

// An address of this host. Also if the list of addresses cannot be read: then the connection may be from this host.
bool is_own_address(const SocketEnd& end) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return true;
  bool own = false;
  for (const ifaddrs* each = all; each != nullptr && !own; each = each->ifa_next) {
    const auto address = each->ifa_addr == nullptr ? std::nullopt : end_of(*each->ifa_addr);
    own = address && address->has_address_of(end);
  }
  ::freeifaddrs(all);
  return own;
}

}  // namespace

bool SocketEnd::has_address_of(const SocketEnd& other) const {
  return std::memcmp(&address, &other.address, sizeof address) == 0;
}

bool SocketEnd::operator==(const SocketEnd& other) const {
  return port == other.port && has_address_of(other);
}

bool SocketEnd::is_loopback() const {
  return is_ipv4(address) ? address.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&address);
}

std::string SocketEnd::address_text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool four = is_ipv4(address);
  const void* bytes = four ? static_cast<const void*>(&address.s6_addr[12]) : &address;
  return ::inet_ntop(four ? AF_INET : AF_INET6, bytes, text.data(), text.size()) == nullptr ? ""
                                                                                            : text.data();
}

std::optional<SocketEnds> ends_of(int connection) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      ::getpeername(connection, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    return std::nullopt;
  const auto ours = end_of(reinterpret_cast<const sockaddr&>(own)),
             theirs = end_of(reinterpret_cast<const sockaddr&>(peer));
  if (!ours || !theirs) return std::nullopt;
  return SocketEnds{*ours, *theirs};
}

std::optional<uid_t> user_in_table(const std::string& table, const SocketEnds& ends) {
  for (const std::string& line : nonempty_lines(table)) {
    std::istringstream words(line);
    std::string number, own, peer, state, queues, timer, retransmits, timeout;
    std::uint64_t user = 0, inode = 0;
    words >> number >> own >> peer >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    if (!words || end_in(own) != ends.peer || end_in(peer) != ends.own) continue;
    if (inode == 0) return std::nullopt;  // no process has it open
    return static_cast<uid_t>(user);
  }
  return std::nullopt;
}

// The kernel shows a socket that its process has closed as one of root, with the number 0. If it is closed while
// the first answer is written, the second answer has the number 0.
std::optional<uid_t> peer_user(const SocketEnds& ends) {
  const auto user = ask_once(ends);
  return user && ask_once(ends) == user ? user : std::nullopt;
}

bool from_other_user(int connection, Closed closed) {
  const auto ends = ends_of(connection);
  if (!ends) {  // the peer has closed
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    return closed == Closed::as_of_another &&
           ::getsockname(connection, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
           (own.ss_family == AF_INET || own.ss_family == AF_INET6);
  }
  if (ends->within_host() || is_own_address(ends->peer)) {
    const auto user = peer_user(*ends);
    return user ? *user != ::geteuid() : closed == Closed::as_of_another;
  }
  // A host can have further addresses, by a route of the type "local". The kernel knows those sockets too.
  const auto user = user_by_netlink(*ends);
  return user && *user != ::geteuid();
}

}  // namespace trainyard
