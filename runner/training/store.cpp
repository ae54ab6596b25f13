#include "runner/training/store.h"

#include <chrono>
#include <ostream>
#include <thread>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include "base/log.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

void serve_store(std::ostream& out) {
  ignore_broken_pipes();
  const pid_t parent = getppid();
  c10d::TCPStoreOptions options;
  options.port = 0;  // any that is free
  options.isServer = true;
  options.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  out << "127.0.0.1 " << store->getPort() << std::endl;
  // afterwards: who reads both streams as one takes the address as the first line
  log::info("store serves", {{"address", "127.0.0.1"}, {"port", store->getPort()}, {"parent", parent}});
  while (getppid() == parent) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  log::info("store ends", {{"why", "its parent has ended"}});
}

}  // namespace trainyard::runner
