// Where the seconds of an epoch's training went, on the main thread. `other` is what remains of the whole.
#pragma once

#include <chrono>

namespace trainyard::runner {

struct TimeParts {
  double data = 0;                   // gathering batches
  double forward = 0;                // with the loss
  double backward = 0;               // with launching reductions
  double exposed_communication = 0;  // waiting for gradients
  double bubble = 0;                 // waiting for a stage neighbour
  double optimizer = 0;
  double sum() const { return data + forward + backward + exposed_communication + bubble + optimizer; }
};

// Seconds since it was made or last asked.
class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace trainyard::runner
