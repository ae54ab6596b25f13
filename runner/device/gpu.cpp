#include "runner/device/gpu.h"

#include <optional>

#include <ATen/ATen.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace trainyard::runner {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

c10::DeviceIndex number(int index) {
  return static_cast<c10::DeviceIndex>(index);
}

// The total over all kinds of memory of the allocator.
const auto& whole(const c10::CachingAllocator::StatArray& of_kinds) {
  return of_kinds[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

class EventMark final : public TimeMark {
 public:
  explicit EventMark(unsigned int flags = cudaEventDefault) : event_(flags) { event_.record(); }
  bool passed() const override { return event_.query(); }
  double seconds_after(const TimeMark& earlier) const override {
    return 1e-3 * static_cast<double>(static_cast<const EventMark&>(earlier).event_.elapsed_time(event_));
  }

 private:
  at::cuda::CUDAEvent event_;  // with timing
};

// One memory pool for all graphs. They can share it because they run one after the other and never read the
// results of another graph. The pool lives as long as a graph that uses it.
using MemoryPool = std::shared_ptr<const c10::MempoolId_t>;

template <class Action>
void quietly(const Action& action) {
  try {
    action();
  } catch (const std::exception&) {  // the first error is more useful
  }
}

class StreamGraph final : public CudaGraph {
 public:
  explicit StreamGraph(MemoryPool pool) : pool_(std::move(pool)) {}

  void capture(const std::function<void()>& work) override {
    c10::cuda::device_synchronize();
    const int uses = uses_of_pool();
    try {
      // thread local, so that calls of NCCL's watchdog are not captured
      graph_->capture_begin(*pool_, cudaStreamCaptureModeThreadLocal);
      work();
      graph_->capture_end();
    } catch (...) {
      give_up(uses);
      throw;
    }
  }
  void replay() override { graph_->replay(); }
  // An external event is a node of the graph, and not a dependency within the graph.
  std::unique_ptr<TimeMark> mark() override { return std::make_unique<EventMark>(cudaEventExternal); }

 private:
  // Cleans up after a failed capture, because LibTorch does not do it completely:
  // - 2.11 and 2.12, if CUDA reports at the end that the capture was invalidated: both allocators stay in
  //   capture mode and keep a filter that points to the graph.
  // - 2.13: the same if the capture could not begin.
  // - No version releases the pool.
  // So the capture mode is ended here while the graph still exists. Allocators that have left it throw.
  void give_up(int uses) {
    quietly([&] {
      using c10::cuda::CaptureStatus;
      if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != CaptureStatus::None) graph_->capture_end();
    });
    at::HostAllocator& pinned = *at::getHostAllocator(at::kCUDA);
    quietly([&] { allocator::endAllocateToPool(device_, *pool_); });
    quietly([&] { pinned.end_allocate_to_pool(*pool_); });
    graph_.reset();
    if (uses_of_pool() > uses) {
      quietly([&] { allocator::releasePool(device_, *pool_); });
      quietly([&] { pinned.release_pool(*pool_); });
    }
    pool_.reset();
    (void)cudaGetLastError();  // else the next kernel launch would report this error
  }
  // The number of graphs that use the pool.
  int uses_of_pool() const {
    int uses = 0;
    quietly([&] { uses = allocator::getPoolUseCount(device_, *pool_); });
    return uses;
  }

  MemoryPool pool_;
  c10::DeviceIndex device_ = c10::cuda::current_device();
  std::optional<at::cuda::CUDAGraph> graph_{std::in_place};  // empty after a failed capture
};

}  // namespace

std::optional<int> gpu_count() {
  return c10::cuda::device_count();
}

GpuFacts gpu_facts(int index) {
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
  return {index, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem),
          gpu_uuid({properties.uuid.bytes, sizeof properties.uuid.bytes})};
}

void use_gpu(int index) {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  c10::cuda::set_device(number(index));
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, number(index)));
  at::globalContext().setBenchmarkCuDNN(true);
}

void synchronize_gpu(int index) {
  const c10::cuda::CUDAGuard guard(number(index));
  c10::cuda::device_synchronize();
}

DeviceMemory gpu_memory(int index) {
  const c10::cuda::CUDAGuard guard(number(index));
  std::size_t free = 0, all = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &all));
  const auto stats = allocator::getDeviceStats(number(index));
  const auto& held = whole(stats.reserved_bytes);
  const auto& used = whole(stats.allocated_bytes);
  return {static_cast<std::int64_t>(all), static_cast<std::int64_t>(free) + held.current - used.current,
          used.peak};
}

void reset_gpu_peak(int index) {
  allocator::resetPeakStats(number(index));
}

at::Tensor copied_beside(const at::Tensor& pinned, int index) {
  const auto computing = c10::cuda::getCurrentCUDAStream(number(index));
  const auto copying = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, number(index));
  at::cuda::CUDAEvent copied;
  at::Tensor there;
  {
    const c10::cuda::CUDAStreamGuard guard(copying);
    there = pinned.to(at::Device(at::kCUDA, number(index)), /*non_blocking=*/true);
    copied.record(copying);
  }
  copied.block(computing);
  there.record_stream(computing);
  return there;
}

MakeCudaGraph gpu_graphs() {
  return [last = std::weak_ptr<const c10::MempoolId_t>()]() mutable {
    MemoryPool pool = last.lock();
    if (!pool) last = pool = std::make_shared<const c10::MempoolId_t>(at::cuda::graph_pool_handle());
    return std::make_unique<StreamGraph>(std::move(pool));
  };
}

MakeMark gpu_marks() {
  return [] { return std::make_unique<EventMark>(); };
}

}  // namespace trainyard::runner
