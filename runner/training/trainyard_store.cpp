// trainyard-store: a rendezvous store, which is a key-value store over TCP, for foreign programs and for ranks
// on several hosts. It prints its address with a free port of the loopback interface, and serves until its
// parent ends. It refuses connections of other users (docs/security.md).
#include <chrono>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "runner/communicator/store.h"
#include "runner/device/rank_process.h"

namespace {

using namespace trainyard;

void serve() {
  const pid_t parent = getppid();
  const runner::ServedStore store = runner::serve_store();
  std::cout << "127.0.0.1 " << store.port << std::endl;
  // After the address, because a reader of both streams expects the address in the first line.
  log::info("store serves", {{"address", "127.0.0.1"}, {"port", store.port}, {"parent", parent}});
  while (getppid() == parent) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  log::info("store ends", {{"why", "its parent has ended"}});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Print \"127.0.0.1 PORT\" and serve ranks there until the process that started it ends.",
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
