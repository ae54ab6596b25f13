// The mesh of a run: the position of each rank, and a communicator per dimension. What a rank does follows
// from mesh and schedule alone, so trainer and training loop are the same for all strategies
// (experiments/run/strategies.h).
//
// Position: replicas × stages, rank = replica · stages + stage.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "experiments/run/run.h"
#include "runner/communicator/communicator.h"
#include "runner/communicator/gloo_communicator.h"
#include "runner/device/device.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

struct Position {
  int replica = 0;
  int stage = 0;
  bool operator==(const Position&) const = default;
};

struct Mesh {
  int replicas = 1;
  int stages = 1;
  int world_size() const { return replicas * stages; }
  Position position(int rank) const { return {rank / stages, rank % stages}; }
};

// The mesh of `strategy`. UserError where it does not have `world_size` ranks or not the dimensions of its
// kind.
Mesh mesh_of(const experiments::Strategy& strategy, int world_size);

// Layers [first, last) of a chain.
struct StageLayers {
  std::size_t first = 0;
  std::size_t last = 0;
  bool operator==(const StageLayers&) const = default;
};

// Those of `stage` in a chain of `layers`. UserError where there are more stages than layers or the
// boundaries do not cut the chain into them.
StageLayers layers_of_stage(const experiments::Strategy& strategy, int stage, std::size_t layers);

// How a rank is connected: a communicator for each dimension of the mesh. `replicas` are the ranks that hold
// the same layers, and reduce gradients; `stages` those of the same replica, and exchange activations.

struct Connections {
  Mesh mesh;
  Position position;
  std::unique_ptr<Communicator> replicas;
  std::unique_ptr<Communicator> stages;
  at::Device device = at::Device(at::DeviceType::CPU);  // where this rank computes

  // "shared memory", "gloo"; "none" of a single rank.
  const char* transport() const { return (mesh.replicas > 1 ? replicas : stages)->transport(); }
  bool last_stage() const { return position.stage == mesh.stages - 1; }
  void barrier() const;  // of all ranks
};

// The only rank.
Connections unconnected(at::Device device = at::Device(at::DeviceType::CPU));

// Meets the other ranks of `mesh` as `rank`, through `store`, and talks to them by `communicator`: "auto",
// "gloo" or "nccl", which experiments/protocol/transport.h turns into what fits the GPUs of all ranks. What
// goes through host memory takes memory that ranks share where they are on one host and can, else Gloo.
// UserError for another name, and where NCCL cannot work.
Connections connect(const Store& store, const Mesh& mesh, int rank, bool one_host,
                    std::chrono::milliseconds timeout = communication_timeout,
                    const std::string& communicator = "auto", const DeviceAssignment& seat = {});

// As the launcher says; the store is looked for only where there are several ranks.
Connections connect(const Environment& environment, const Mesh& mesh,
                    const std::string& communicator = "auto", const DeviceAssignment& seat = {});

}  // namespace trainyard::runner
