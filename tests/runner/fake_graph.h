// A graph that does on the CPU what a GPU's does: nothing while it is captured, the step again in each
// replay.
#pragma once

#include <functional>
#include <memory>

#include "runner/captured_steps.h"

namespace trainyard::runner::testing {

struct Counts {
  int captured = 0;
  int replayed = 0;
};

class FakeGraph final : public StepGraph {
 public:
  explicit FakeGraph(Counts& counts) : counts_(counts) {}
  void capture(const std::function<void()>& work) override {
    work_ = work;
    ++counts_.captured;
  }
  void replay() override {
    work_();
    ++counts_.replayed;
  }
  std::unique_ptr<TimeMark> mark() override { return nullptr; }  // nobody asks: the CPU has no timeline

 private:
  Counts& counts_;
  std::function<void()> work_;
};

inline MakeGraph fake_graphs(Counts& counts) {
  return [&counts] { return std::make_unique<FakeGraph>(counts); };
}

}  // namespace trainyard::runner::testing
