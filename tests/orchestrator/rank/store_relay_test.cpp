// The way from ranks on other hosts to the store: who passes, and that strangers do not keep others waiting.
#include "orchestrator/rank/store_relay.h"

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/host.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/local_sockets.h"

using namespace trainyard;
using namespace trainyard::orchestrator;
using tests::closed_without_answer;
using tests::connected_between;
using tests::connection_to;
using tests::in_own_network;

namespace {

// A store that sends back what it gets, and counts its connections.
class Echo {
 public:
  Echo()
      : thread_([this] {
          for (int i = 0;; ++i) {
            const int fd = ::accept(listening_.fd.get(), nullptr, nullptr);
            if (fd < 0) return;
            ++connections;
            clients_.emplace_back([fd] {
              std::array<char, 4096> bytes{};
              ssize_t size = 0;
              while ((size = ::read(fd, bytes.data(), bytes.size())) > 0)
                if (::send(fd, bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) break;
              ::close(fd);
            });
          }
        }) {}
  ~Echo() {
    ::shutdown(listening_.fd.get(), SHUT_RDWR);
    thread_.join();
    for (std::thread& each : clients_) each.join();
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  StoreAddress address() const { return {"127.0.0.1", std::to_string(listening_.port)}; }

  std::atomic<int> connections = 0;

 private:
  tests::ListeningSocket listening_;
  std::vector<std::thread> clients_;
  std::thread thread_;
};

const auto nobody_else = [](const std::string&) { return false; };

// A store behind a gateway, and the secret of the launch.
struct Launched {
  explicit Launched(const std::function<bool(const std::string&)>& is_peer = nobody_else)
      : secret(LaunchSecret::make(folder.path)), gateway(secret, store.address(), "", is_peer) {}
  RendezvousEndpoint endpoint() const { return {gateway.port(), {host_name(), "127.0.0.1"}}; }

  TemporaryFolder folder;
  Echo store;
  LaunchSecret secret;
  StoreGateway gateway;
};

std::string read_bytes(int fd, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t have = ::recv(fd, bytes.data(), size, MSG_WAITALL);
  bytes.resize(have < 0 ? 0 : static_cast<std::size_t>(have));
  return bytes;
}

// What comes back if `text` is sent to a port and the connection is half closed.
std::string echo_of(const std::string& text, int port) {
  const FileDescriptor fd = connection_to(port);
  std::thread sender([&] {
    ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(fd.get(), SHUT_WR);
  });
  std::string all = read_bytes(fd.get(), text.size() + 1);
  sender.join();
  return all;
}

bool root() {
  if (::geteuid() != 0) MESSAGE("skipped: only root can become another user");
  return ::geteuid() == 0;
}

}  // namespace

TEST_CASE("bytes pass from a rank through entrance and gateway to the store, and back") {
  const Launched launch;
  const auto gateway = find_gateway(launch.secret, launch.endpoint());
  REQUIRE(gateway);
  const StoreEntrance entrance(launch.secret, *gateway);
  const int port = std::stoi(entrance.address().port);
  CHECK(entrance.address().host == "127.0.0.1");
  CHECK(echo_of("key", port) == "key");
  std::string large;
  for (int i = 0; large.size() < 3'000'000; ++i) large += std::to_string(i) + " ";
  CHECK(echo_of(large, port) == large);
}

TEST_CASE("a far end that does not answer stops no other connection") {
  class SlowDoor : public Door {
   public:
    SlowDoor(int store, std::shared_future<void> go) : store_(store), go_(std::move(go)) {}
    std::optional<std::string> greeting(int) override { return ""; }
    std::size_t answer_size() const override { return 0; }
    FileDescriptor open(int, const std::string&, const std::string&) const override {
      if (calls_++ > 0) go_.wait_for(std::chrono::seconds(10));
      return FileDescriptor(tests::connect_to_port(store_));
    }

   private:
    int store_;
    std::shared_future<void> go_;
    mutable std::atomic<int> calls_ = 0;
  };
  Echo store;
  std::promise<void> go;
  tests::ListeningSocket listening;
  REQUIRE(::fcntl(listening.fd.get(), F_SETFL, O_NONBLOCK) == 0);
  const SocketRelay relay(std::move(listening.fd), std::make_unique<SlowDoor>(std::stoi(store.address().port),
                                                                              go.get_future().share()));
  const auto answer_of = [](const FileDescriptor& fd, int milliseconds) -> std::string {
    pollfd polled{fd.get(), POLLIN, 0};
    return ::send(fd.get(), "key", 3, MSG_NOSIGNAL) == 3 && ::poll(&polled, 1, milliseconds) == 1
               ? read_bytes(fd.get(), 3)
               : "";
  };
  const FileDescriptor first = connection_to(relay.port());
  CHECK(answer_of(first, 5000) == "key");
  std::vector<FileDescriptor> waiting;  // more than the relay opens at the same time
  for (int i = 0; i < 70; ++i) waiting.push_back(connection_to(relay.port()));
  CHECK(answer_of(waiting.front(), 100).empty());
  CHECK(answer_of(first, 5000) == "key");
  go.set_value();
  CHECK(answer_of(waiting.back(), 5000) == "key");
}

TEST_CASE("the gateway is found by its name, and its address is a number from then on") {
  const Launched launch;
  const auto gateway = find_gateway(launch.secret, {launch.gateway.port(), {"localhost"}});
  REQUIRE(gateway);
  CHECK((gateway->host == "127.0.0.1" || gateway->host == "::1"));
}

TEST_CASE("a caller that does not know the secret gets a challenge only, and no connection to the store") {
  const Launched launch;
  const FileDescriptor caller = connection_to(launch.gateway.port());
  CHECK(read_bytes(caller.get(), challenge_size).size() == challenge_size);
  const std::string guess(challenge_size + proof_size, 'x');
  REQUIRE(::send(caller.get(), guess.data(), guess.size(), 0) == static_cast<ssize_t>(guess.size()));
  CHECK(closed_without_answer(caller.get()));
  const TemporaryFolder other;
  CHECK_FALSE(find_gateway(LaunchSecret::make(other.path), launch.endpoint()));
  CHECK(launch.store.connections == 0);
}

TEST_CASE("an overheard proof is worth nothing on another connection") {
  const Launched launch;
  const auto begin = [&](FileDescriptor& caller) {
    caller = connection_to(launch.gateway.port());
    return read_bytes(caller.get(), challenge_size);
  };
  FileDescriptor first, second;
  const std::string challenge = begin(first), ours(challenge_size, 'e');
  const std::string answer = ours + launch.secret.entrance_proof(challenge, ours);
  REQUIRE(::send(first.get(), answer.data(), answer.size(), 0) == static_cast<ssize_t>(answer.size()));
  CHECK(read_bytes(first.get(), proof_size) == launch.secret.gateway_proof(challenge, ours));
  CHECK(begin(second) != challenge);
  REQUIRE(::send(second.get(), answer.data(), answer.size(), 0) == static_cast<ssize_t>(answer.size()));
  CHECK(closed_without_answer(second.get()));
}

TEST_CASE("a gateway that does not know the secret is not used") {
  const TemporaryFolder folder;
  const tests::ListeningSocket impostor;
  std::thread answers([&] {
    const FileDescriptor caller(::accept(impostor.fd.get(), nullptr, nullptr));
    const std::string challenge(challenge_size, 'g'), proof(proof_size, 'p');
    ::send(caller.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL);
    read_bytes(caller.get(), challenge_size + proof_size);
    ::send(caller.get(), proof.data(), proof.size(), MSG_NOSIGNAL);
  });
  CHECK_FALSE(find_gateway(LaunchSecret::make(folder.path), {impostor.port, {"127.0.0.1", host_name()}}));
  CHECK_FALSE(find_gateway(LaunchSecret::make(folder.path), {impostor.port, {"no such host"}}));
  connection_to(impostor.port);  // if the impostor was not called
  answers.join();
}

TEST_CASE("another user of the host gets no byte from the gateway and from the entrance") {
  if (!root()) return;
  const Launched launch;
  const StoreEntrance entrance(launch.secret, {"127.0.0.1", std::to_string(launch.gateway.port())});
  CHECK(tests::ConnectionsOfNobody(launch.gateway.port(), 1).last_is_closed());
  CHECK(tests::ConnectionsOfNobody(std::stoi(entrance.address().port), 1).last_is_closed());
  CHECK(launch.store.connections == 0);
}

TEST_CASE("a host that is not in the job gets no byte from the gateway") {
  bool refused = false, challenged = false;
  const bool tried = in_own_network([&] {
    const Launched launch([](const std::string& address) { return address == "10.1.1.2"; });
    const FileDescriptor peer = connected_between("10.1.1.2", "10.1.1.1", launch.gateway.port());
    challenged = peer && read_bytes(peer.get(), challenge_size).size() == challenge_size;
    const FileDescriptor stranger = connected_between("10.1.1.1", "10.1.1.2", launch.gateway.port());
    refused = stranger && closed_without_answer(stranger.get());
  });
  if (!tried) {
    MESSAGE("skipped: this user cannot make a network");
    return;
  }
  CHECK(challenged);
  CHECK(refused);
}

TEST_CASE("1,100 callers that say nothing do not keep a rank from the store") {
  if (!tests::allow_open_files(4000)) {
    MESSAGE("skipped: it needs 4,000 open files");
    return;
  }
  const Launched launch;
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 1100; ++i) idle.push_back(connection_to(launch.gateway.port()));
  const auto gateway = find_gateway(launch.secret, launch.endpoint());
  REQUIRE(gateway);
  const StoreEntrance entrance(launch.secret, *gateway);
  CHECK(echo_of("key", std::stoi(entrance.address().port)) == "key");
  // The oldest ones were closed after their challenge.
  CHECK(read_bytes(idle.front().get(), challenge_size).size() == challenge_size);
  CHECK(closed_without_answer(idle.front().get()));
}

TEST_CASE("a gateway on an interface listens on its address only, and an unknown interface is an error") {
  const TemporaryFolder folder;
  const LaunchSecret secret = LaunchSecret::make(folder.path);
  const auto make = [&](const std::string& interface) {
    return StoreGateway(secret, {"127.0.0.1", "1"}, interface, nobody_else).port();
  };
  CHECK_THROWS_WITH_AS(make("no-such-one"), doctest::Contains("interface no-such-one"), UserError);
  CHECK(addresses_of_interface("no-such-one").empty());
}

TEST_CASE("only its user can read the secret of a launch, and each launch has a new one") {
  const TemporaryFolder folder;
  const auto file = folder.path / "store.secret";
  CHECK_FALSE(LaunchSecret::read(folder.path));
  std::filesystem::create_symlink("/etc/passwd", file);
  const LaunchSecret first = LaunchSecret::make(folder.path), second = LaunchSecret::make(folder.path);
  CHECK(first.gateway_proof("a", "b") != second.gateway_proof("a", "b"));
  CHECK(second.gateway_proof("a", "b") != second.entrance_proof("a", "b"));
  const auto status = std::filesystem::symlink_status(file);
  CHECK(status.type() == std::filesystem::file_type::regular);
  CHECK(status.permissions() == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  REQUIRE(LaunchSecret::read(folder.path));
  CHECK(LaunchSecret::read(folder.path)->gateway_proof("a", "b") == second.gateway_proof("a", "b"));
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  CHECK_THROWS_WITH_AS(LaunchSecret::read(folder.path),
                       doctest::Contains("can be read by other users; put `spool` on a file system"),
                       UserError);
  LaunchSecret::remove(folder.path);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(LaunchSecret::read(folder.path), doctest::Contains("; remove it"), UserError);
  LaunchSecret::remove(folder.path);
  std::filesystem::create_symlink("/etc/passwd", file);
  CHECK_THROWS_WITH_AS(LaunchSecret::read(folder.path),
                       doctest::Contains("it is a link, not a plain file; remove it"), UserError);
  CHECK_THROWS_WITH_AS(LaunchSecret::make(folder.path / "missing"),
                       doctest::Contains("check the permissions of the folder"), UserError);
}
