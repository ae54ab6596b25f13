// The rendezvous store: a file for ranks of one host, and who can reach a store that is served.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <unistd.h>

#include "runner/communicator/gloo_communicator.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::store_test {

// The addresses of this host where `port` listens, as in /proc/net/tcp: "0100007F" is 127.0.0.1.
std::vector<std::string> listening_addresses(int port) {
  std::vector<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const auto colon = local.find(':');
      if (state == "0A" && std::stoi(local.substr(colon + 1), nullptr, 16) == port)
        addresses.push_back(local.substr(0, colon));
    }
  }
  return addresses;
}

TEST_CASE("a store for this host listens on the loopback interface only, and answers there") {
  const ServedStore served = serve_store(Listen::loopback);
  CHECK(listening_addresses(served.port) == std::vector<std::string>{"0100007F"});
  Environment environment;
  environment.world_size = 2;
  environment.store_port = static_cast<std::uint16_t>(served.port);
  environment.agent_store = true;
  connect_store(environment)->set("key", std::string("value"));
  CHECK(connect_store(environment)->get_to_str("key") == "value");
}

TEST_CASE("a store for other hosts listens on all interfaces") {
  const ServedStore served = serve_store(Listen::all_interfaces);
  const auto addresses = listening_addresses(served.port);
  REQUIRE(addresses.size() == 1);
  CHECK(addresses[0].find_first_not_of('0') == std::string::npos);
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

}  // namespace trainyard::runner::store_test
