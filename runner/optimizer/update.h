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

// If replicas share memory, each one updates its own shards (runner/gradients/sharded_reducer.h). With servers, they do
// (runner/optimizer/parameter_server.h).
struct Update {
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<StepOrder> order = std::make_unique<StepOrder>();
};

}  // namespace trainyard::runner
