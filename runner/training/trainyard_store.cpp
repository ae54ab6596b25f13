// trainyard-store: prints the address of a fresh rendezvous store and serves it until its parent ends.
#include <iostream>

#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "runner/device/rank_process.h"
#include "runner/training/store.h"

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "trainyard-store takes no arguments: it prints \"127.0.0.1 PORT\" and serves ranks there "
                 "until the "
                 "process that started it ends\n";
    return 2;
  }
  trainyard::runner::die_with_parent();
  try {
    trainyard::log::to_standard_error(trainyard::log::level_from_environment());
    trainyard::runner::serve_store(std::cout);
  } catch (const std::exception& error) {
    std::cerr << "error: " << trainyard::first_line(error.what()) << std::endl;
    _exit(1);
  }
  _exit(0);
}
