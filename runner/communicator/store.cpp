#include "runner/communicator/store.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runner/communicator/accepted_connections.h"
#include "runner/communicator/process_groups.h"

namespace trainyard::runner {

namespace {

Store connect_to(const Environment& environment) {
  if (!environment.store_file.empty())
    return c10::make_intrusive<c10d::FileStore>(environment.store_file.string(), environment.world_size);
  c10d::TCPStoreOptions options;
  options.port = environment.store_port;
  options.isServer = !environment.agent_store && environment.rank == 0;
  options.waitWorkers = false;
  options.timeout = communication_timeout;
  if (options.isServer) require_checked_accept();
  return c10::make_intrusive<c10d::TCPStore>(environment.store_host, options);
}

}  // namespace

Store connect_store(const Environment& environment) {
  ignore_broken_pipes();  // this process may serve the store
  return guarded(environment.rank, "connecting to the store", [&]() -> Store {
    const Store store = connect_to(environment);
    store->setTimeout(communication_timeout);
    return c10::make_intrusive<c10d::PrefixStore>("trainyard/" + environment.run_id, store);
  });
}

}  // namespace trainyard::runner
