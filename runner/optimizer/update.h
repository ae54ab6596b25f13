// From the gradients of a stage on each replica to its next parameters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runner/gradients/reducer.h"
#include "runner/optimizer/optimizer.h"

namespace trainyard::runner {

// What an asynchronous server has done in an epoch.
struct ServerLog {
  std::vector<std::int64_t> events;  // experiments/protocol/server_log.h
  std::map<std::int64_t, std::int64_t>
      staleness;  // updates by how many others came after their parameters were read
};

// The steps that this rank computes: by default all, one after the other.
class StepOrder {
 public:
  virtual ~StepOrder() = default;
  virtual void begin_epoch(std::int64_t steps) {
    steps_ = steps;
    next_ = 0;
  }
  // The next one of the epoch, from 0. Empty at its end.
  virtual std::optional<std::int64_t> next() {
    return next_ < steps_ ? std::optional(next_++) : std::nullopt;
  }
  virtual ServerLog take_log() { return {}; }

 protected:
  std::int64_t steps_ = 0;  // of the epoch
  std::int64_t next_ = 0;
};

// Bytes of the tensors of a rank, in the fullest moment of its first step.
struct HeldBytes {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t state = 0;     // of the optimizer
  std::int64_t messages = 0;  // copies that are sent to other ranks, or received from them
};

// The parameters of a rank: by default they are always whole. With `sharding = "parameters"` they are whole except
// within `Trainer::train_epoch`: from the first step on, each replica keeps its slices and gathers the others for the
// layers that need them (runner/optimizer/zero.h). A server has only its part, and its network is empty from the first step
// on (runner/optimizer/server_parts.h).
class WholeParameters {
 public:
  virtual ~WholeParameters() = default;
  virtual void begin_step(networks::ForwardContext& /*of_layers*/) {}
  virtual void gather() {}  // makes all parameters whole until the next step; collective
  // The parameters, gradients and messages of the steps so far. Empty if they are always whole.
  virtual std::optional<HeldBytes> held() { return std::nullopt; }
};

// If replicas share memory, each one updates its own shards (runner/gradients/sharded_reducer.h). With servers, they do
// (runner/optimizer/parameter_server.h).
struct Update {
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<StepOrder> order = std::make_unique<StepOrder>();
  std::unique_ptr<WholeParameters> whole = std::make_unique<WholeParameters>();
};

// Call it after the gradients of a step. Memory that replicas share counts in equal parts.
HeldBytes held_bytes(const Update& update, std::vector<at::Tensor> parameters);

}  // namespace trainyard::runner
