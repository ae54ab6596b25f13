#include "runner/communicator/store.h"

#include <sys/resource.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/fd.h"
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

// As many open files as the system allows. The usual limit of 1,024 would end the rendezvous of many ranks.
void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
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

ServedStore serve_store() {
  ignore_broken_pipes();
  require_checked_accept();
  allow_many_connections();
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.waitWorkers = false;
  FileDescriptor socket = listen_on_loopback(options.port);  // TCPStore itself listens on all interfaces
  options.masterListenFd = socket.release();                 // the store closes it
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  return {store, store->getPort()};
}

}  // namespace trainyard::runner
