#include "runner/trainer/mesh.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/named_row.h"
#include "experiments/protocol/transport.h"
#include "experiments/run/strategies.h"
#include "runner/communicator/nccl_communicator.h"
#include "runner/communicator/nccl_settings.h"
#include "runner/communicator/shared_memory_communicator.h"
#include "runner/communicator/store.h"

namespace trainyard::runner {

namespace {

std::string mesh_text(const experiments::Strategy& strategy) {
  return std::to_string(strategy.replicas) + " replicas × " + std::to_string(strategy.stages) + " stages" +
         (strategy.tensor > 1 ? " × " + std::to_string(strategy.tensor) + " parts" : "") +
         (strategy.servers > 0 ? " + " + std::to_string(strategy.servers) + " servers" : "");
}

using MeetOnHost = std::unique_ptr<Communicator> (*)(const Store&, const std::string& name,
                                                     const GroupOptions&);

std::unique_ptr<Communicator> fastest(const Store& store, const std::string& name,
                                      const GroupOptions& group) {
  auto shared = group.one_host ? shared_memory_communicator(store, name, group) : nullptr;
  return shared ? std::move(shared) : gloo_communicator(store, name, group);
}

struct NamedCommunicator {
  const char* name;
  MeetOnHost host;  // makes the communicator for host memory
};

constexpr std::array communicators{NamedCommunicator{"auto", fastest},
                                   NamedCommunicator{"gloo", gloo_communicator},
                                   NamedCommunicator{"nccl", fastest}};

// The GPUs of all ranks of a group, exchanged through the store.
std::vector<std::string> gpus_of(const Store& store, const std::string& name, const GroupOptions& group,
                                 const std::string& own) {
  std::vector<std::string> gpus(static_cast<std::size_t>(group.size));
  if (own.empty()) return gpus;
  const auto key = [&](int rank) { return name + "/gpu/" + std::to_string(rank); };
  store->set(key(group.rank), own);
  for (int rank = 0; rank < group.size; ++rank)
    gpus[static_cast<std::size_t>(rank)] = store->get_to_str(key(rank));
  return gpus;
}

std::unique_ptr<Communicator> meet(const Store& store, const std::string& name, const GroupOptions& group,
                                   const NamedCommunicator& communicator,
                                   const DeviceAssignment& assignment) {
  const std::vector<std::string> gpus = gpus_of(store, name, group, assignment.gpu);
  const auto transport =
      experiments::transport_of(communicator.name, gpus, experiments::nccl_support(nccl_version()));
  auto on_host = communicator.host(store, name, group);
  if (transport == experiments::Transport::nccl) {
    set_nccl_environment(std::set(gpus.begin(), gpus.end()).size() < gpus.size());
    return nccl_communicator(store, name, group, assignment.device, std::move(on_host));
  }
  if (transport == experiments::Transport::host_copies)
    return host_copies(std::move(on_host), assignment.device);
  return on_host;
}

// Any two ranks exchange messages, which NCCL allows only between neighbours.
std::unique_ptr<Communicator> through_host(const Store& store, const std::string& name,
                                           const GroupOptions& group, const NamedCommunicator& communicator,
                                           at::Device device) {
  auto on_host = communicator.host(store, name, group);
  return device.is_cpu() ? std::move(on_host) : host_copies(std::move(on_host), device);
}

}  // namespace

Mesh mesh_of(const experiments::Strategy& strategy, int world_size) {
  const experiments::StrategyKind& kind = experiments::find_strategy(strategy.kind);
  if ((strategy.replicas > 1 && !kind.replicas.any()) || (strategy.stages > 1 && !kind.stages.any()) ||
      !kind.servers.has(strategy.servers) || !kind.tensor.has(strategy.tensor)) {
    throw UserError(
        "strategy " + strategy.name + " of kind " + kind.name + " cannot have " + mesh_text(strategy),
        "use mp-ddp or tensor");
  }
  if (strategy.world_size() != world_size) {
    throw UserError("strategy " + strategy.name + " has " + mesh_text(strategy) + ", but WORLD_SIZE is " +
                        std::to_string(world_size),
                    "start one process per rank");
  }
  return {static_cast<int>(strategy.replicas), static_cast<int>(strategy.stages),
          static_cast<int>(strategy.servers), static_cast<int>(strategy.tensor)};
}

models::NodeRange layers_of_stage(const experiments::Strategy& strategy, int stage, std::size_t layers) {
  const auto count = static_cast<std::int64_t>(layers);
  if (strategy.stages > count) {
    throw UserError("strategy " + strategy.name + " has " + std::to_string(strategy.stages) +
                        " stages, but the model has " + std::to_string(layers) + " layers",
                    "use at most " + std::to_string(layers) + " stages");
  }
  std::vector<std::int64_t> starts{0};
  starts.insert(starts.end(), strategy.boundaries.begin(), strategy.boundaries.end());
  starts.push_back(count);
  const bool ascending =
      std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
  if (static_cast<std::int64_t>(starts.size()) != strategy.stages + 1 || !ascending) {
    throw UserError("the boundaries of strategy " + strategy.name + " do not divide " +
                        std::to_string(layers) + " layers into " + std::to_string(strategy.stages) +
                        " stages",
                    "list the first layer of each stage except the first, in ascending order");
  }
  const auto s = static_cast<std::size_t>(stage);
  return {static_cast<std::size_t>(starts[s]), static_cast<std::size_t>(starts[s + 1])};
}

void Connections::barrier() const {
  if (with_servers) return with_servers->barrier();
  parts->barrier();     // all ranks of this stage of this replica
  stages->barrier();    // so all ranks of this replica
  replicas->barrier();  // so all ranks of all replicas
}

std::map<std::string, std::int64_t> Connections::take_sent_bytes() const {
  std::map<std::string, std::int64_t> sent;
  for (const auto& [name, ranks] :
       {std::pair("replicas", replicas.get()), std::pair("stages", stages.get()),
        std::pair("parts", parts.get()), std::pair("servers", with_servers.get())})
    if (const std::int64_t bytes = ranks == nullptr ? 0 : ranks->take_sent_bytes(); bytes > 0)
      sent[name] = bytes;
  return sent;
}

Connections unconnected(at::Device device) {
  return {{}, {}, single_communicator(), single_communicator(), nullptr, device};
}

Connections connect(const Store& store, const Mesh& mesh, int rank, bool one_host,
                    std::chrono::milliseconds timeout, const std::string& communicator,
                    const DeviceAssignment& assignment) {
  const Position at = mesh.position(rank);
  const NamedCommunicator& row =
      named_row(communicators, &NamedCommunicator::name, "communicator", communicator);
  const auto dimension = [&](const std::string& name, int own, int size, bool chain) {
    const GroupOptions group{own, size, one_host, timeout, chain};
    return size == 1 ? single_communicator() : meet(store, name, group, row, assignment);
  };
  const std::string stage = "stage " + std::to_string(at.stage),
                    replica = "replica " + std::to_string(at.replica),
                    part = "part " + std::to_string(at.part);
  if (mesh.servers == 0)
    return {mesh,
            at,
            dimension("replicas of " + stage + ", " + part, at.replica, mesh.replicas, false),
            dimension("stages of " + replica + ", " + part, at.stage, mesh.stages, true),
            nullptr,
            assignment.device,
            nullptr,
            dimension("parts of " + replica + ", " + stage, at.part, mesh.tensor, false)};
  return {
      mesh,
      at,
      at.is_server() ? dimension("servers", at.stage - mesh.stages, mesh.servers, false)
                     : dimension("replicas", at.replica, mesh.replicas, false),
      single_communicator(),
      through_host(store, "all ranks", {rank, mesh.world_size(), one_host, timeout}, row, assignment.device),
      assignment.device};
}

Connections connect(const Environment& environment, const Mesh& mesh, const std::string& communicator,
                    const DeviceAssignment& assignment) {
  if (mesh.world_size() == 1) return unconnected(assignment.device);
  return connect(connect_store(environment), mesh, environment.rank, environment.one_host(),
                 communication_timeout, communicator, assignment);
}

}  // namespace trainyard::runner
