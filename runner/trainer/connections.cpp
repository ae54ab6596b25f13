#include "runner/trainer/connections.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/named_row.h"
#include "experiments/protocol/transport.h"
#include "runner/communicator/gloo_communicator.h"
#include "runner/communicator/host_copies.h"
#include "runner/communicator/nccl_communicator.h"
#include "runner/communicator/nccl_settings.h"
#include "runner/communicator/shared_memory_communicator.h"

namespace trainyard::runner {

namespace {

using MeetOnHost = std::unique_ptr<Communicator> (*)(const Store&, const std::string& name, const RankGroup&);

std::unique_ptr<Communicator> fastest(const Store& store, const std::string& name, const RankGroup& group) {
  auto shared = group.one_host ? shared_memory_communicator(store, name, group) : nullptr;
  return shared ? std::move(shared) : gloo_communicator(store, name, group);
}

struct NamedCommunicator {
  const char* name;
  MeetOnHost host;  // what goes through host memory goes by it
};

constexpr std::array communicators{NamedCommunicator{"auto", fastest},
                                   NamedCommunicator{"gloo", gloo_communicator},
                                   NamedCommunicator{"nccl", fastest}};

// The GPUs of a group, which its ranks tell one another.
std::vector<std::string> gpus_of(const Store& store, const std::string& name, const RankGroup& group,
                                 const std::string& own) {
  std::vector<std::string> gpus(static_cast<std::size_t>(group.size));
  if (own.empty()) return gpus;
  const auto key = [&](int rank) { return name + "/gpu/" + std::to_string(rank); };
  store->set(key(group.rank), std::vector<std::uint8_t>(own.begin(), own.end()));
  for (int rank = 0; rank < group.size; ++rank) {
    const std::vector<std::uint8_t> text = store->get(key(rank));
    gpus[static_cast<std::size_t>(rank)] = {text.begin(), text.end()};
  }
  return gpus;
}

std::unique_ptr<Communicator> meet(const Store& store, const std::string& name, const RankGroup& group,
                                   const std::string& communicator, const Seat& seat) {
  const MeetOnHost host =
      models::named_row(communicators, &NamedCommunicator::name, "communicator", communicator).host;
  const std::vector<std::string> gpus = gpus_of(store, name, group, seat.gpu);
  const auto transport =
      experiments::transport_of(communicator, gpus, experiments::nccl_support(nccl_version()));
  auto on_host = host(store, name, group);
  if (transport == experiments::Transport::nccl) {
    set_nccl_environment(std::set(gpus.begin(), gpus.end()).size() < gpus.size());
    return nccl_communicator(store, name, group, seat.device, std::move(on_host));
  }
  if (transport == experiments::Transport::host_copies) return host_copies(std::move(on_host), seat.device);
  return on_host;
}

}  // namespace

void Connections::barrier() const {
  stages
      ->barrier();  // then all ranks of this replica have come, and after the next line those of all replicas
  replicas->barrier();
}

Connections unconnected(at::Device device) {
  return {{}, {}, single_communicator(), single_communicator(), device};
}

Connections connect(const Store& store, const Mesh& mesh, int rank, bool one_host,
                    std::chrono::milliseconds timeout, const std::string& communicator, const Seat& seat) {
  const Position at = mesh.position(rank);
  const auto dimension = [&](const std::string& name, int own, int size, bool chain) {
    const RankGroup group{own, size, one_host, timeout, chain};
    return size == 1 ? single_communicator() : meet(store, name, group, communicator, seat);
  };
  return {
      mesh, at, dimension("replicas of stage " + std::to_string(at.stage), at.replica, mesh.replicas, false),
      dimension("stages of replica " + std::to_string(at.replica), at.stage, mesh.stages, true), seat.device};
}

Connections connect(const Environment& environment, const Mesh& mesh, const std::string& communicator,
                    const Seat& seat) {
  if (mesh.world_size() == 1) return unconnected(seat.device);
  return connect(connect_store(environment), mesh, environment.rank, environment.one_host(),
                 communication_timeout, communicator, seat);
}

}  // namespace trainyard::runner
