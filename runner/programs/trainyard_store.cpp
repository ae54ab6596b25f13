// trainyard-store: prints the address of a fresh rendezvous store and serves it until its parent ends.
#include <iostream>
#include <string_view>

#include <unistd.h>

#include "runner/process.h"
#include "runner/store.h"

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "trainyard-store takes no arguments: it prints \"127.0.0.1 PORT\" and serves ranks there "
                 "until the "
                 "process that started it ends\n";
    return 2;
  }
  trainyard::runner::die_with_parent();
  try {
    trainyard::runner::serve_store(std::cout);
  } catch (const std::exception& error) {
    std::cerr << "error: "
              << std::string_view(error.what()).substr(0, std::string_view(error.what()).find('\n'))
              << std::endl;
    _exit(1);
  }
  _exit(0);
}
