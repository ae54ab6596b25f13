// A fake CUDA graph on the CPU. It does nothing while it is captured and repeats the step in each replay.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "runner/trainer/cuda_graph_cache.h"

namespace trainyard::runner::testing {

struct Counts {
  int captured = 0;
  int replayed = 0;
};

class FakeGraph final : public CudaGraph {
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
  std::unique_ptr<TimeMark> mark() override { return nullptr; }  // the CPU has no timeline

 private:
  Counts& counts_;
  std::function<void()> work_;
};

// A graph whose capture fails, in CUDA or in NCCL.
class BrokenGraph final : public CudaGraph {
 public:
  explicit BrokenGraph(bool nccl = false) : nccl_(nccl) {}
  void capture(const std::function<void()>&) override {
    if (nccl_) throw CommunicationError("rank 1: all-reduce failed: unhandled cuda error\nLast error:");
    TORCH_CHECK(false, "operation not permitted\nin file x");
  }
  void replay() override { throw std::logic_error("replayed what was not captured"); }
  std::unique_ptr<TimeMark> mark() override { return nullptr; }

 private:
  bool nccl_;
};

inline MakeCudaGraph fake_graphs(Counts& counts) {
  return [&counts] { return std::make_unique<FakeGraph>(counts); };
}

}  // namespace trainyard::runner::testing
