#include "runner/connections.h"

#include <array>
#include <string>

#include "models/named_row.h"
#include "runner/gloo_communicator.h"
#include "runner/shared_memory_communicator.h"

namespace trainyard::runner {

namespace {

using Meet = std::unique_ptr<Communicator> (*)(const Store&, const std::string& name, const RankGroup&);

std::unique_ptr<Communicator> fastest(const Store& store, const std::string& name, const RankGroup& group) {
  auto shared = group.one_host ? shared_memory_communicator(store, name, group) : nullptr;
  return shared ? std::move(shared) : gloo_communicator(store, name, group);
}

struct NamedCommunicator {
  const char* name;
  Meet meet;
};

constexpr std::array communicators{NamedCommunicator{"auto", fastest},
                                   NamedCommunicator{"gloo", gloo_communicator}};

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
                    std::chrono::milliseconds timeout, const std::string& communicator) {
  const Position at = mesh.position(rank);
  const Meet meet =
      models::named_row(communicators, &NamedCommunicator::name, "communicator", communicator).meet;
  const auto dimension = [&](const std::string& name, int own, int size) {
    return size == 1 ? single_communicator() : meet(store, name, {own, size, one_host, timeout});
  };
  return {mesh, at, dimension("replicas of stage " + std::to_string(at.stage), at.replica, mesh.replicas),
          dimension("stages of replica " + std::to_string(at.replica), at.stage, mesh.stages)};
}

Connections connect(const Environment& environment, const Mesh& mesh, const std::string& communicator) {
  if (mesh.world_size() == 1) return unconnected();
  return connect(connect_store(environment), mesh, environment.rank, environment.one_host(),
                 communication_timeout, communicator);
}

}  // namespace trainyard::runner
