// A graph of a device's work: captured once, replayed often.
#pragma once

#include <functional>
#include <memory>

#include "runner/device/device_timeline.h"

namespace trainyard::runner {

// What a device's library for graphs can do; a fake one in tests.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  virtual void capture(
      const std::function<void()>& work) = 0;    // what `work` gives to the device, which does not do it
  virtual void replay() = 0;                     // does it, at the same addresses
  virtual std::unique_ptr<TimeMark> mark() = 0;  // in the work that is captured, passed in each replay
};
using MakeGraph = std::function<std::unique_ptr<StepGraph>()>;

}  // namespace trainyard::runner
