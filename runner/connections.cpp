#include "runner/connections.h"

#include <string>

#include "runner/shared_memory_communicator.h"

namespace trainyard::runner {

namespace {

// Memory that the ranks share where they are on one host and can, else TCP.
std::unique_ptr<Communicator> meet(const Store& store, const std::string& name, const RankGroup& group) {
  if (group.size == 1) return single_communicator();
  auto shared = group.one_host ? shared_memory_communicator(store, name, group) : nullptr;
  return shared ? std::move(shared) : gloo_communicator(store, name, group);
}

}  // namespace

void Connections::barrier() const {
  stages
      ->barrier();  // then all ranks of this replica have come, and after the next line those of all replicas
  replicas->barrier();
}

Connections unconnected() {
  return {{}, {}, single_communicator(), single_communicator()};
}

Connections connect(const Store& store, const Mesh& mesh, int rank, bool one_host,
                    std::chrono::milliseconds timeout) {
  const Position at = mesh.position(rank);
  const auto dimension = [&](const std::string& name, int own, int size) {
    return meet(store, name, {own, size, one_host, timeout});
  };
  return {mesh, at, dimension("replicas of stage " + std::to_string(at.stage), at.replica, mesh.replicas),
          dimension("stages of replica " + std::to_string(at.replica), at.stage, mesh.stages)};
}

Connections connect(const Environment& environment, const Mesh& mesh) {
  if (mesh.world_size() == 1) return unconnected();
  return connect(connect_store(environment), mesh, environment.rank, environment.one_host());
}

}  // namespace trainyard::runner
