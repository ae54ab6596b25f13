// How a rank is connected: a communicator for each dimension of the mesh. `replicas` are the ranks that hold
// the same layers, and reduce gradients; `stages` those of the same replica, and exchange activations.
#pragma once

#include <chrono>
#include <memory>

#include "runner/communicator/communicator.h"
#include "runner/communicator/gloo_communicator.h"
#include "runner/device/environment.h"
#include "runner/device/seat.h"
#include "runner/trainer/mesh.h"

namespace trainyard::runner {

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
                    const std::string& communicator = "auto", const Seat& seat = {});

// As the launcher says; the store is looked for only where there are several ranks.
Connections connect(const Environment& environment, const Mesh& mesh,
                    const std::string& communicator = "auto", const Seat& seat = {});

}  // namespace trainyard::runner
