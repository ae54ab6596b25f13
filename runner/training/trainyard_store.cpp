// trainyard-store: a rendezvous store, a key-value store that other processes reach over TCP. It takes a free
// port, prints its address, and serves until its parent ends. LibTorch's store listens on all network
// interfaces (docs/security.md).
#include <chrono>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "runner/communicator/gloo_communicator.h"
#include "runner/device/rank_process.h"

namespace {

using namespace trainyard;

void serve() {
  const pid_t parent = getppid();
  const runner::LocalStore store = runner::open_local_store();
  std::cout << "127.0.0.1 " << store.port << std::endl;
  // Not before: who reads both streams as one takes the address as the first line.
  log::info("store serves", {{"address", "127.0.0.1"}, {"port", store.port}, {"parent", parent}});
  while (getppid() == parent) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  log::info("store ends", {{"why", "its parent has ended"}});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Prints \"127.0.0.1 PORT\" and serves ranks there until the process that started it ends.",
                   "trainyard-store");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  runner::die_with_parent();
  try {
    log::to_standard_error(log::level_from_environment());
    serve();
  } catch (const std::exception& error) {
    std::cerr << "error: " << first_line(error.what()) << std::endl;
    _exit(1);
  }
  _exit(0);
}
