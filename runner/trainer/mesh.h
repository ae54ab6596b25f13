// The mesh of a run: the position of each rank, and a communicator per dimension. The work of a rank depends
// on mesh and schedule only. So trainer and training loop are the same for all strategies
// (experiments/run/strategies.h).
//
// Position: replicas × stages × tensor, rank = (replica · stages + stage) · tensor + part. Servers follow: they have no part
// of a batch.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "experiments/run/run.h"
#include "models/graph.h"
#include "runner/communicator/communicator.h"
#include "runner/communicator/gloo_communicator.h"
#include "runner/data/sampler.h"
#include "runner/device/device.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

struct Position {
  int replica = 0;  // of a server `no_replica`
  int stage = 0;    // of a server: its checkpoint follows those of the stages
  int part = 0;     // of the split layers of the stage
  bool is_server() const { return replica == no_replica; }
  bool operator==(const Position&) const = default;
};

struct Mesh {
  int replicas = 1;
  int stages = 1;
  int servers = 0;
  int tensor = 1;  // parts of split layers
  int workers() const { return replicas * stages * tensor; }
  int world_size() const { return workers() + servers; }
  Position position(int rank) const {
    if (servers > 0 && rank >= workers()) return {no_replica, stages + rank - workers()};
    return {rank / (stages * tensor), rank / tensor % stages, rank % tensor};
  }
  // The checkpoint that a rank writes or reads.
  int checkpoint_of(const Position& position) const { return position.stage * tensor + position.part; }
};

// The mesh of `strategy`. UserError if it does not have `world_size` ranks, or has a dimension that its kind
// does not allow.
Mesh mesh_of(const experiments::Strategy& strategy, int world_size);

// The nodes of `stage` in a graph with `layers` nodes. UserError if there are more stages than nodes, or if the
// boundaries do not divide the graph into the stages.
models::NodeRange layers_of_stage(const experiments::Strategy& strategy, int stage, std::size_t layers);

// The communicators of a rank, one per dimension of the mesh.
// - `replicas`: the ranks with the same layers, which reduce gradients. A server has all servers here.
// - `stages`: the ranks of the same replica. They exchange activations.
// - `with_servers`: all ranks. Null without servers.
// - `in_step`: ranks that only begin each step together. Null for other kinds.
// - `parts`: the parts of the same stage of the same replica. They exchange values within a layer.
struct Connections {
  Mesh mesh;
  Position position;
  std::unique_ptr<Communicator> replicas;
  std::unique_ptr<Communicator> stages;
  std::unique_ptr<Communicator> with_servers;
  at::Device device = at::Device(at::DeviceType::CPU);  // of this rank
  std::unique_ptr<Communicator> in_step = {};
  std::unique_ptr<Communicator> parts = single_communicator();

  // "shared memory", "gloo", …; "none" for a single rank.
  const char* transport() const {
    return (with_servers        ? with_servers
            : mesh.replicas > 1 ? replicas
            : mesh.tensor > 1   ? parts
                                : stages)
        ->transport();
  }
  // The ranks whose first parameters must be equal.
  Communicator& with_equal_layers() const { return with_servers ? *with_servers : *replicas; }
  bool last_stage() const { return position.stage == mesh.stages - 1; }
  void barrier() const;  // of all ranks
  // What this rank has sent since the last call: bytes by communicator ("replicas"), if there were any.
  std::map<std::string, std::int64_t> take_sent_bytes() const;
};

// The connections of a single rank.
Connections unconnected(at::Device device = at::Device(at::DeviceType::CPU));

// Rendezvous of the ranks of `mesh` through `store`.
// - `communicator` is "auto", "gloo" or "nccl". experiments/protocol/transport.h selects the transport that
//   fits the GPUs of all ranks.
// - Tensors in host memory use shared memory if the ranks are on one host and can share memory, else Gloo.
// - UserError for another name, or if NCCL cannot be used.
Connections connect(const Store& store, const Mesh& mesh, int rank, bool one_host,
                    std::chrono::milliseconds timeout = communication_timeout,
                    const std::string& communicator = "auto", const DeviceAssignment& assignment = {});

// The same with the rank and the store that the launcher has set. A single rank needs no store.
Connections connect(const Environment& environment, const Mesh& mesh,
                    const std::string& communicator = "auto", const DeviceAssignment& assignment = {});

}  // namespace trainyard::runner
