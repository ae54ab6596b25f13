// Cache of training steps as CUDA graphs. A complete step (batch, forward, backward, reduction, optimizer) is
// captured as a graph and replayed with other samples. So the host launches one graph per step instead of
// hundreds of kernels, which take most of the time of small networks. runner/trainer/step_runner.h decides
// which steps are captured.
//
// The first steps of a shape are computed without a graph, so that libraries choose algorithms and allocate.
// A capture computes nothing, and then the same step is replayed. So a graph does not change the results.
//
// If a graph contains collectives, all ranks must capture and replay together (NCCL user guide, "Using NCCL
// with CUDA graphs").
// - The decision depends only on the shape of the global batch, which is the same on all replicas.
// - After each capture, the replicas exchange through the host whether it succeeded.
// - If it failed on one replica, all replicas drop their graphs, renew their group, and compute this step and
//   all later ones. No replica is ahead then, because a capture computes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/communicator/communicator.h"
#include "runner/device/gpu.h"
#include "runner/device/step_times.h"

namespace trainyard::runner {

class CudaGraphCache {
 public:
  static constexpr int eager_steps = 3;           // per shape, before the capture
  static constexpr std::size_t most_graphs = 32;  // about the number of frequent shapes of sentences

  // Computes the step on the samples `indices`, int64 [batch] on the device, which differ in each replay. It
  // marks its parts if `marks` are given. Its work on the host is not repeated in replays.
  using Work = std::function<void(const at::Tensor& indices, const std::shared_ptr<PartMarks>& marks)>;

  // `replicas` make each step together, and must outlive the cache.
  CudaGraphCache(MakeCudaGraph make, at::Device device, Communicator& replicas);

  struct Step {
    std::vector<std::int64_t> shape;  // of the global batch
    at::Tensor indices;               // sample indices, on the CPU
    std::int64_t divisor = 1;         // of the summed loss
    std::int64_t number = 0;
  };
  // Replays the step and returns true, or returns false if the caller must compute it. Collective.
  // - `work` may be captured. So it must read everything that differs between steps from the device.
  // - `timeline` marks the replays, and may be nullptr.
  bool replay(const Step& step, const Work& work, DeviceTimeline* timeline = nullptr);
  const at::Tensor& step_number() const { return step_number_; }  // int64 [], on the device
  const at::Tensor& loss_factor() const { return loss_factor_; }  // double [], on the device: 1 / divisor

  void clear();  // drops all graphs

  // Reason why a capture has failed. No capture is tried after that. Empty if none has failed.
  const std::string& failure() const { return failure_; }

 private:
  struct Captured {
    int seen = 0;
    at::Tensor indices;  // the graph reads the sample indices here
    std::shared_ptr<ReplayedMarks> marks;
    std::unique_ptr<CudaGraph> graph;
  };
  bool capture(Captured& captured, const at::Tensor& like, const Work& work, bool marked);
  // The reason of a failure. Empty if there is none.
  std::string try_capture(Captured& captured, const at::Tensor& like, const Work& work, bool marked);
  std::size_t graphs() const;  // number of graphs

  MakeCudaGraph make_;
  at::Device device_;
  Communicator& replicas_;
  at::Tensor step_number_;
  at::Tensor loss_factor_;
  std::map<std::vector<std::int64_t>, Captured> by_shape_;
  std::string failure_;
};

}  // namespace trainyard::runner
