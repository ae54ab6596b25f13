// Marks of a clock that a test moves.
#pragma once

#include "runner/device/step_times.h"

namespace trainyard::runner::testing {

// A mark at `at`. It has passed if `at` <= `now`.
struct FakeMark final : TimeMark {
  FakeMark(double at, const double& now) : at_(at), now_(now) {}
  bool passed() const override { return at_ <= now_; }
  double seconds_after(const TimeMark& earlier) const override {
    return at_ - static_cast<const FakeMark&>(earlier).at_;
  }
  double at_;
  const double& now_;
};

}  // namespace trainyard::runner::testing
