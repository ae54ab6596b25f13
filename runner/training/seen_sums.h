// The sums of an epoch so far as people see them while it is trained. On a CPU they are there at once. A GPU
// computes them some steps later than the host asks, and no step waits for that: they are copied behind the
// work that was given to it, and shown when they have arrived. So what is seen of a GPU is a little older.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "runner/data/metrics.h"
#include "runner/device/device_timeline.h"

namespace trainyard::runner {

struct SeenSums {
  double loss = 0;
  std::optional<std::int64_t> correct;  // nothing where accuracy is not defined
  std::int64_t weight = 0;
};

// At once; on a GPU the host waits for it.
SeenSums seen(const MetricSums& sums);

class SumsOnTheirWay {
 public:
  // `make` marks the work of `device`; not called on a CPU.
  SumsOnTheirWay(at::Device device, MakeMark make);

  void begin();  // of other sums: forgets those of before
  // The last that have arrived since `begin`; nothing before the first have. Has those of now follow, unless
  // some are under way.
  std::optional<SeenSums> look(const MetricSums& sums);

 private:
  void send(const MetricSums& sums);

  at::Device device_;
  MakeMark make_;
  at::Tensor arriving_;             // float64 [2] on the host: loss, correct
  std::int64_t weight_ = 0;         // of those
  std::unique_ptr<TimeMark> mark_;  // behind their copy; null: none are under way
  bool forgotten_ = false;          // those under way are of sums before `begin`
  std::optional<SeenSums> arrived_;
};

}  // namespace trainyard::runner
