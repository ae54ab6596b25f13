// Phase times of a device, with a clock that only the test moves.
#include <vector>

#include "runner/device/step_times.h"
#include "runner/trainer/cuda_graph_cache.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/fake_mark.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using testing::FakeMark;

TEST_CASE("the seconds of a device are measured between its marks, and read after it has passed them") {
  double given = 0, now = 0;  // device times: of all enqueued work, and of finished work
  StepTimes times;
  const auto timeline =
      std::make_shared<DeviceTimeline>([&] { return std::make_unique<FakeMark>(given, now); });
  times.device = timeline;
  PartWatch epoch(times);
  for (int step = 0; step < 5000; ++step) {  // more marks than are kept waiting
    given += 1;
    epoch.lap(&TimeParts::data);
    PartWatch inner(times);
    given += 2;
    inner.lap(&TimeParts::forward);
    given += 4;
    inner.lap(&TimeParts::backward);
    inner.move(3, &TimeParts::backward, &TimeParts::bubble);  // host time does not change device time
    given += 8;
    epoch.skip();
    now = given - 10;
  }
  CHECK(times.passed.sum() == 0);
  const TimeParts parts = timeline->take();
  CHECK(parts.data == 5000);
  CHECK(parts.forward == 10'000);
  CHECK(parts.backward == 20'000);
  CHECK(parts.sum() == 35'000);
  given += 16;
  epoch.lap(&TimeParts::optimizer);
  CHECK(timeline->take().sum() == 16);
}

// A graph that contains only marks. Each replay passes them at the times that the test gives.
class MarksGraph final : public CudaGraph {
 public:
  MarksGraph(double& given, const double& now, const std::vector<double>& seconds)
      : given_(given), now_(now), seconds_(seconds) {}
  void capture(const std::function<void()>& work) override { work(); }
  void replay() override {
    for (FakeMark* mark : marks_) mark->at_ = given_ += seconds_.at(static_cast<std::size_t>(passed_++));
  }
  std::unique_ptr<TimeMark> mark() override {
    auto mark = std::make_unique<FakeMark>(0, now_);
    marks_.push_back(mark.get());
    return mark;
  }

 private:
  double& given_;
  const double& now_;
  const std::vector<double>& seconds_;  // before each mark of all replays
  std::vector<FakeMark*> marks_;
  int passed_ = 0;
};

TEST_CASE("the phases of replayed steps of a device are divided as in the last replay") {
  double given = 0;
  const double now = 1e9;  // the device has finished everything
  DeviceTimeline timeline([&] { return std::make_unique<FakeMark>(given, now); });
  // Waiting for the host, forward, backward, no phase, optimizer.
  const std::vector<double> seconds{1, 2, 4, 1, 2, /**/ 5, 2, 4, 1, 2, /**/ 1, 3, 5, 0.5, 1.5};
  const auto alone = single_communicator();
  CudaGraphCache steps([&] { return std::make_unique<MarksGraph>(given, now, seconds); }, at::kCPU, *alone);
  const auto work = [](const at::Tensor&, const std::shared_ptr<PartMarks>& marks) {
    StepTimes inside;
    inside.device = marks;
    PartWatch watch(inside);
    watch.lap(&TimeParts::forward);
    watch.lap(&TimeParts::backward);
    watch.skip();
    watch.lap(&TimeParts::optimizer);
  };
  const int all = CudaGraphCache::eager_steps + 3;
  for (int step = 0; step < all; ++step) {
    timeline.mark(nullptr);
    if (!steps.replay({{1}, at::arange(1), 1, step}, work, &timeline)) given += 100;  // in no phase
  }
  const TimeParts parts = timeline.take();
  CHECK(parts.forward == doctest::Approx(3 * 3));
  CHECK(parts.backward == doctest::Approx(3 * 5));
  CHECK(parts.optimizer == doctest::Approx(3 * 1.5));
  CHECK(parts.data == 0);
  CHECK(timeline.take().sum() == 0);
}

TEST_CASE("the phases of replayed steps are never longer than the steps, however slow the last one was") {
  double given = 0;
  const double now = 1e9;
  DeviceTimeline timeline([&] { return std::make_unique<FakeMark>(given, now); });
  const std::vector<double> seconds{0, 1, 1, /**/ 0, 1, 1, /**/ 0, 4, 12};
  const auto alone = single_communicator();
  CudaGraphCache steps([&] { return std::make_unique<MarksGraph>(given, now, seconds); }, at::kCPU, *alone);
  const auto work = [](const at::Tensor&, const std::shared_ptr<PartMarks>& marks) {
    marks->mark(nullptr);
    marks->mark(&TimeParts::forward);
    marks->mark(&TimeParts::backward);
  };
  for (int step = 0; step < CudaGraphCache::eager_steps + 3; ++step) {
    timeline.mark(nullptr);
    steps.replay({{1}, at::arange(1), 1, step}, work, &timeline);
  }
  const TimeParts parts = timeline.take();
  CHECK(parts.sum() == doctest::Approx(2 + 2 + 16));
  CHECK(parts.backward == doctest::Approx(3 * parts.forward));
}

}  // namespace
