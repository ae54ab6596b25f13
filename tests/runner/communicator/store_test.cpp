// The rendezvous store: a file for ranks of one host, and who can reach a store that is served. The ports of
// Gloo on one host, too.
#include "runner/communicator/store.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sockets/loopback.h"
#include "base/sockets/rendezvous_store.h"
#include "runner/communicator/gloo_communicator.h"
#include "tests/runner/support/child.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/support/local_sockets.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::store_test {

using testing::Child;
using tests::closed_without_answer;
using tests::connection_to;
using tests::ConnectionsOfNobody;

// The numbers of the sockets of this process.
std::set<std::string> own_sockets() {
  std::set<std::string> numbers;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(fd, closed).string();
    if (target.starts_with("socket:[")) numbers.insert(target.substr(8, target.size() - 9));
  }
  return numbers;
}

// The listening ports of this process, each with its addresses as in /proc/net/tcp: "0100007F" is 127.0.0.1.
std::map<int, std::vector<std::string>> listening_ports() {
  std::map<int, std::vector<std::string>> ports;
  const auto sockets = own_sockets();
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream in(tests::read_text(table));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >>
          inode;
      const auto colon = local.find(':');
      if (state == "0A" && sockets.contains(inode))
        ports[std::stoi(local.substr(colon + 1), nullptr, 16)].push_back(local.substr(0, colon));
    }
  }
  return ports;
}

Environment client_of(int port, int rank = 1) {
  Environment environment;
  environment.world_size = 2;
  environment.rank = rank;
  environment.store_port = static_cast<std::uint16_t>(port);
  environment.agent_store = true;
  return environment;
}

// Whether two ranks exchange keys through the store.
bool ranks_meet(int port) {
  auto second = std::async(std::launch::async, [&] {
    const Store store = connect_store(client_of(port, 1));
    store->set("1", std::string("second"));
    return store->get_to_str("0");
  });
  const Store store = connect_store(client_of(port, 0));
  store->set("0", std::string("first"));
  return store->get_to_str("1") == "second" && second.get() == "first";
}

// A store that a thread of this process serves.
struct ServedStore {
  RendezvousStore store;
  int port = store.port();
  std::jthread thread{
      [this](const std::stop_token& stop) { store.serve([&] { return !stop.stop_requested(); }); }};
};

// Two ranks of one host as threads, connected by Gloo. Calls `action` with the ports that they have opened.
void with_gloo(const std::function<void(const std::set<int>&)>& action, bool one_host = true) {
  const ServedStore served;
  const auto before = listening_ports();
  auto second = std::async(std::launch::async, [&] {
    auto group = gloo_communicator(connect_store(client_of(served.port, 1)), "all",
                                   {.rank = 1, .size = 2, .one_host = one_host});
    group->barrier();
    return group;
  });
  const auto first = gloo_communicator(connect_store(client_of(served.port, 0)), "all",
                                       {.rank = 0, .size = 2, .one_host = one_host});
  first->barrier();
  const auto other = second.get();
  std::set<int> opened;
  for (const auto& [port, addresses] : listening_ports())
    if (!before.contains(port)) opened.insert(port);
  action(opened);
}

TEST_CASE("a store for this host listens on the loopback interface only, and answers there") {
  const ServedStore served;
  CHECK(listening_ports()[served.port] == std::vector<std::string>{"0100007F"});
  connect_store(client_of(served.port))->set("key", std::string("value"));
  CHECK(connect_store(client_of(served.port))->get_to_str("key") == "value");
}

TEST_CASE("a user of this host who is not the owner of the store gets no answer from it") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  const ServedStore served;
  ConnectionsOfNobody stranger(served.port, 1);
  CHECK(stranger.last_is_closed());
  CHECK(ranks_meet(served.port));
}

TEST_CASE("1,100 idle connections of another user do not stall the rendezvous") {
  if (::geteuid() != 0 || !tests::allow_open_files(1300)) {
    MESSAGE("skipped: only root can become another user, and it needs 1,300 open files");
    return;
  }
  Child store({"/bin/sh", "-c", "ulimit -S -n 1024; exec \"$0\"", TRAINYARD_STORE});
  const std::string address = store.read_line();
  const int port = std::stoi(address.substr(address.find(' ')));
  ConnectionsOfNobody strangers(port, 1100);
  CHECK(ranks_meet(port));
  CHECK(strangers.last_is_closed());
}

TEST_CASE("1,100 idle connections of the same user do not stall the rendezvous") {
  if (!tests::allow_open_files(2600)) {
    MESSAGE("skipped: it needs 2,600 open files");
    return;
  }
  Child store({"/bin/sh", "-c", "ulimit -S -n 1024; exec \"$0\"", TRAINYARD_STORE});
  const std::string address = store.read_line();
  const int port = std::stoi(address.substr(address.find(' ')));
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 1100; ++i) idle.push_back(connection_to(port));
  CHECK(ranks_meet(port));
}

TEST_CASE("Gloo on one host listens on the loopback interface only") {
  with_gloo([](const std::set<int>& ports) {
    CHECK(ports.size() >= 1);
    const auto all = listening_ports();
    for (const int port : ports) CHECK(all.at(port) == std::vector<std::string>{"0100007F"});
  });
}

TEST_CASE("Gloo on several hosts listens on the interface that the launcher names") {
  // 127.0.0.1 or ::1, as Gloo chooses.
  const std::set<std::string> loopback{"0100007F", "00000000000000000000000001000000"};
  ::setenv("GLOO_SOCKET_IFNAME", "lo", 1);
  with_gloo(
      [&](const std::set<int>& ports) {
        REQUIRE(ports.size() >= 1);
        const auto all = listening_ports();
        for (const int port : ports)
          for (const std::string& address : all.at(port)) CHECK(loopback.contains(address));
      },
      false);
  ::unsetenv("GLOO_SOCKET_IFNAME");
}

TEST_CASE("another user of this host cannot connect to Gloo") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  with_gloo([](const std::set<int>& ports) {
    REQUIRE(ports.size() >= 1);
    for (const int port : ports) {
      const FileDescriptor own = connection_to(port);
      CHECK_FALSE(closed_without_answer(own.get(), 300));
      CHECK(ConnectionsOfNobody(port, 1).last_is_closed());
    }
  });
}

TEST_CASE("ranks of one host meet in a file, and each launch has its own keys") {
  const auto file =
      std::filesystem::temp_directory_path() / ("trainyard-store-" + std::to_string(::getpid()));
  Environment first, second;
  first.world_size = second.world_size = 2;
  first.store_file = second.store_file = file;
  first.run_id = second.run_id = "0123456789ab/1";
  second.rank = 1;
  {
    const Store waiting = connect_store(second);
    std::thread setter([&] { connect_store(first)->set("address", std::string("here")); });
    CHECK(waiting->get_to_str("address") == "here");
    setter.join();
    second.run_id = "0123456789ab/2";
    CHECK_FALSE(connect_store(second)->check({"address"}));
  }
  std::filesystem::remove(file);
}

TEST_CASE("NCCL gets a connection that its sender has closed, and nobody else does") {
  void* library = ::dlopen(FAKE_NCCL, RTLD_NOW);
  REQUIRE(library != nullptr);
  auto* const accept_in_nccl = reinterpret_cast<int (*)(int)>(::dlsym(library, "fake_nccl_accept"));
  const FileDescriptor listening = listen_on_loopback();
  const int port = port_of(listening.get());
  const auto send_and_close = [&] { REQUIRE(::send(connection_to(port).get(), "hello", 5, 0) == 5); };
  send_and_close();
  CHECK_FALSE(FileDescriptor(::accept(listening.get(), nullptr, nullptr)));
  send_and_close();
  CHECK(FileDescriptor(accept_in_nccl(listening.get())));
}

}  // namespace trainyard::runner::store_test
