// trainyard-store: a rendezvous store for foreign programs and for ranks on several hosts. It prints its address with a
// free port of the loopback interface, and serves until its parent ends. It refuses connections of other users
// (docs/security.md).
#include <csignal>
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/log.h"
#include "base/sockets/rendezvous_store.h"
#include "base/text.h"

namespace {

using namespace trainyard;

void serve() {
  const pid_t parent = getppid();
  RendezvousStore store;
  std::cout << "127.0.0.1 " << store.port() << std::endl;
  // After the address, because a reader of both streams expects the address in the first line.
  log::info("store serves", {{"address", "127.0.0.1"}, {"port", store.port()}, {"parent", parent}});
  store.serve([&] { return getppid() == parent; });
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
  std::signal(SIGPIPE, SIG_IGN);
  try {
    log::to_standard_error(log::level_from_environment());
    serve();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << first_line(error.what()) << std::endl;
    return 1;
  }
}
