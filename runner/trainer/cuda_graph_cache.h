// Cache of training steps as CUDA graphs. A whole step (batch, forward, backward, reduction, optimizer) is
// captured as a graph and replayed with other samples, so the host launches one thing per step instead of
// hundreds. For small networks the launches are most of the time. runner/trainer/step_runner.h decides which
// steps are captured.
//
// The first steps of a shape are computed. They are real steps, in which libraries choose algorithms and
// allocate. A capture computes nothing; after it the same step is replayed. So the results are those of steps
// without a graph.
//
// Collectives in a graph require that all ranks capture and replay together (NCCL's user guide, "Using NCCL
// with CUDA graphs"). So the decision follows from what is the same on all replicas: the shape of the global
// batch, not of a part. After each capture the replicas tell each other, through the host, whether it
// succeeded. If it failed on one of them, all drop their graphs, replace their group, and compute this step
// and all others. No replica is ahead of another then, because a capture has computed nothing.
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
  static constexpr int eager_steps = 3;           // of each shape, before it is captured
  static constexpr std::size_t most_graphs = 32;  // sentences have so many shapes that come often

  // The step on the samples at `places`, int64 [batch] on the device, which are others in each replay. It
  // marks its parts if `marks` are given. What it does on the host is not repeated.
  using Work = std::function<void(const at::Tensor& places, const std::shared_ptr<PartMarks>& marks)>;

  // `replicas` make each step together; they must outlive it.
  CudaGraphCache(MakeCudaGraph make, at::Device device, Communicator& replicas);

  struct Step {
    std::vector<std::int64_t> shape;  // of the batch of all replicas
    at::Tensor places;                // on the CPU
    std::int64_t divisor = 1;         // of the summed loss
    std::int64_t number = 0;
  };
  // Makes the step by a replay and returns true, or returns false if the caller must compute it. `work` may
  // be captured: it reads from the device what is different in each step. Replays are marked in `timeline`,
  // which may be nullptr. Collective.
  bool replay(const Step& step, const Work& work, DeviceTimeline* timeline = nullptr);
  const at::Tensor& step_number() const { return step_number_; }  // int64 [], on the device
  const at::Tensor& loss_factor() const { return loss_factor_; }  // double [], on the device: 1 / divisor

  void clear();  // drops all graphs

  const std::string& failure() const { return failure_; }  // of a capture, after which none is tried again

 private:
  struct Captured {
    int seen = 0;
    at::Tensor places;  // where the graph reads them
    std::shared_ptr<ReplayedMarks> marks;
    std::unique_ptr<CudaGraph> graph;
  };
  bool capture(Captured& captured, const at::Tensor& like, const Work& work, bool marked);
  // What went wrong; empty if nothing did.
  std::string try_capture(Captured& captured, const at::Tensor& like, const Work& work, bool marked);
  std::size_t graphs() const;  // that there are

  MakeCudaGraph make_;
  at::Device device_;
  Communicator& replicas_;
  at::Tensor step_number_;
  at::Tensor loss_factor_;
  std::map<std::vector<std::int64_t>, Captured> by_shape_;
  std::string failure_;
};

}  // namespace trainyard::runner
