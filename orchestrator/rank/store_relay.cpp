#include "orchestrator/rank/store_relay.h"

#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/sockets/loopback.h"
#include "base/sockets/peer_user.h"

namespace trainyard::orchestrator {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto call_patience = std::chrono::seconds(3);  // for one connection and the proofs
constexpr auto answer_patience = std::chrono::seconds(10);
constexpr const char* loopback_address = "127.0.0.1";

// Addresses that getaddrinfo finds. Numeric ones ask no name server.
using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
Addresses addresses_of(const std::string& host, const std::string& port, int flags = 0) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
  return {found, ::freeaddrinfo};
}

FileDescriptor new_socket(int family) {
  return FileDescriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Waits for an event on a socket until the deadline.
bool wait_for(int fd, short event, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd polled{fd, event, 0};
  return left > 0 && ::poll(&polled, 1, static_cast<int>(left)) == 1;
}

FileDescriptor connected(const addrinfo& address, Clock::time_point deadline) {
  FileDescriptor fd = new_socket(address.ai_family);
  if (!fd) return {};
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  int error = 0;
  socklen_t size = sizeof error;
  const bool good = errno == EINPROGRESS && wait_for(fd.get(), POLLOUT, deadline) &&
                    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  return good ? std::move(fd) : FileDescriptor();
}

// `size` bytes, or fewer if the other end closes or is too slow.
std::string received(int fd, std::size_t size, Clock::time_point deadline) {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size && wait_for(fd, POLLIN, deadline)) {
    const ssize_t more = ::recv(fd, bytes.data() + have, size - have, MSG_DONTWAIT);
    if (more <= 0) break;
    have += static_cast<std::size_t>(more);
  }
  bytes.resize(have);
  return bytes;
}

// A connection to the gateway after both have proved that they know the secret. Empty otherwise.
FileDescriptor call(const LaunchSecret& secret, const addrinfo& address) {
  const auto deadline = Clock::now() + call_patience;
  FileDescriptor fd = connected(address, deadline);
  if (!fd) return {};
  const std::string theirs = received(fd.get(), challenge_size, deadline);
  if (theirs.size() != challenge_size) return {};
  const std::string ours = random_challenge();
  if (!send_now(fd.get(), ours + secret.entrance_proof(theirs, ours))) return {};
  const std::string proof = received(fd.get(), proof_size, deadline);
  return same_proof(proof, secret.gateway_proof(theirs, ours)) ? std::move(fd) : FileDescriptor();
}

// A socket that listens on a free port of an address. Empty if it cannot.
FileDescriptor listening_on(const std::string& host) {
  const Addresses found = addresses_of(host, "0", AI_NUMERICHOST | AI_PASSIVE);
  if (!found) throw InternalError(host + " is not an address");
  FileDescriptor fd = new_socket(found->ai_family);
  const int off = 0;
  if (fd && found->ai_family == AF_INET6)  // also IPv4, if the address is ::
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (!fd || ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return {};
  return fd;
}

FileDescriptor listening(const std::string& interface) {
  FileDescriptor fd;
  if (interface.empty()) {
    fd = listening_on("::");
    if (!fd) fd = listening_on("0.0.0.0");  // a host without IPv6
  } else {
    for (const std::string& address : addresses_of_interface(interface))
      if (!fd) fd = listening_on(address);
  }
  if (fd) return fd;
  throw UserError("the rendezvous cannot listen on " +
                      (interface.empty() ? "any interface" : "interface " + interface) + " of " + host_name(),
                  "set `interface` in [machine] to a network interface that all nodes have");
}

class Gateway {
 public:
  Gateway(LaunchSecret secret, StoreAddress store, std::function<bool(const std::string&)> is_peer)
      : secret_(std::move(secret)), store_(std::move(store)), is_peer_(std::move(is_peer)) {}

  // A connection to the store. Empty if the caller is not of the job, or does not prove that it knows the secret.
  FileDescriptor admit(int connection) {
    const auto ends = ends_of(connection);
    if (!ends || from_other_user(connection)) return {};
    if (!ends->within_host() && !is_peer_(ends->peer.address_text())) {
      report(ends->peer.address_text());
      return {};
    }
    const std::string ours = random_challenge();
    if (!send_now(connection, ours)) return {};
    const std::string answer =
        received(connection, challenge_size + proof_size, Clock::now() + answer_patience);
    if (answer.size() != challenge_size + proof_size) return {};
    const std::string theirs = answer.substr(0, challenge_size);
    if (!same_proof(answer.substr(challenge_size), secret_.entrance_proof(ours, theirs))) return {};
    const Addresses found = addresses_of(store_.host, store_.port, AI_NUMERICHOST);
    if (!found) return {};
    FileDescriptor store = connected(*found, Clock::now() + call_patience);
    if (!store || !send_now(connection, secret_.gateway_proof(ours, theirs))) return {};
    return store;
  }

 private:
  // Each host once, and not more than a stranger with many addresses can fill a disk with.
  void report(const std::string& address) {
    constexpr std::size_t most = 20;
    const std::lock_guard lock(mutex_);
    if (reported_.size() < most && reported_.insert(address).second)
      log::warning("refused a connection from an address outside the job",
                   {{"address", address},
                    {"advice", "if this is a node of the job, its address is translated (NAT)"}});
  }

  LaunchSecret secret_;
  StoreAddress store_;
  std::function<bool(const std::string&)> is_peer_;
  std::mutex mutex_;
  std::set<std::string> reported_;
};

}  // namespace

std::unique_ptr<SocketRelay> store_gateway(const LaunchSecret& secret, const StoreAddress& store,
                                           const std::string& interface,
                                           std::function<bool(const std::string& address)> is_peer) {
  const auto gateway = std::make_shared<Gateway>(secret, store, std::move(is_peer));
  return std::make_unique<SocketRelay>(listening(interface),
                                       [gateway](int connection) { return gateway->admit(connection); });
}

std::unique_ptr<SocketRelay> store_entrance(const LaunchSecret& secret, const StoreAddress& gateway) {
  return std::make_unique<SocketRelay>(listen_on_loopback(), [=](int connection) {
    if (from_other_user(connection)) return FileDescriptor();
    const Addresses found = addresses_of(gateway.host, gateway.port, AI_NUMERICHOST);
    return found ? call(secret, *found) : FileDescriptor();
  });
}

std::optional<StoreAddress> find_gateway(const LaunchSecret& secret, const RendezvousEndpoint& endpoint) {
  const std::string port = std::to_string(endpoint.port);
  const bool same_host = !endpoint.addresses.empty() && endpoint.addresses.front() == host_name();
  for (const std::string& address : endpoint.addresses) {
    if (address == loopback_address && !same_host) continue;
    const Addresses found = addresses_of(address, port);
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next)
      if (call(secret, *each)) return StoreAddress{numeric_address(*each->ai_addr, each->ai_addrlen), port};
  }
  return std::nullopt;
}

}  // namespace trainyard::orchestrator
