// Training steps that a GPU runs by itself: a whole step (batch, forward, backward, reduction, optimizer) is
// captured as a graph and replayed with other samples, so the host launches one thing a step instead of
// hundreds. For small networks that is most of the time. Steps are captured where their shapes are always the
// same and nothing in them needs the host; `why_not_captured` decides, nobody asks for it.
//
// The first steps of a shape run as they are: they are real steps, in which libraries choose algorithms and
// allocate. Capturing computes nothing; then the same step is replayed. So the results are those of steps
// without a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "experiments/run.h"
#include "models/samples.h"

namespace trainyard::runner {

// What a device's library for graphs can do; a fake one in tests.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  virtual void capture(
      const std::function<void()>& work) = 0;  // what `work` gives to the device, which does not do it
  virtual void replay() = 0;                   // does it, at the same addresses
};
using MakeGraph = std::function<std::unique_ptr<StepGraph>()>;

// Why steps of `run` on `input` are not captured, for people; empty where they are. `transport` as in
// Connections.
std::string why_not_captured(const experiments::Run& run, const models::InputShape& input, at::Device device,
                             const std::string& transport);

class CapturedSteps {
 public:
  static constexpr int eager_steps = 3;          // of each shape, before it is captured
  static constexpr std::size_t most_shapes = 4;  // an epoch has two: all batches but the last, and the last

  // The step on samples that lie at `places` on the device, int64 [batch], and are others in each replay.
  // What it does on the host is not repeated.
  using Work = std::function<void(const at::Tensor& places)>;

  CapturedSteps(MakeGraph make, at::Device device);

  // Makes step number `step` on the samples at `places` (on the CPU) by a replay and returns true; or returns
  // false where the caller is to make it as it is. `work` may be captured: it reads the number of the step
  // from `step_number`.
  bool replay(const at::Tensor& places, std::int64_t divisor, std::int64_t step, const Work& work);
  const at::Tensor& step_number() const { return step_number_; }  // int64 [], on the device

  // What was captured holds no more: the learning rate or the data is another.
  void forget();

  const std::string& failure() const { return failure_; }  // of a capture, after which none is tried again

 private:
  struct Captured {
    int seen = 0;
    at::Tensor places;  // where the graph reads them
    std::unique_ptr<StepGraph> graph;
  };
  bool capture(Captured& captured, const at::Tensor& like, const Work& work);

  MakeGraph make_;
  at::Device device_;
  at::Tensor step_number_;
  std::map<std::pair<std::int64_t, std::int64_t>, Captured> by_shape_;  // samples and divisor
  std::string failure_;
};

}  // namespace trainyard::runner
