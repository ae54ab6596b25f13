// Weights of stages on GPUs become one file, by way of host memory.
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>

#include "models/networks/safetensors.h"
#include "runner/trainer/trainer.h"
#include "runner/training/checkpoints.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/passed_on.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using trainyard::tests::read_text;

// A communicator between stages on GPUs. Tensors outside host memory would go to a device that this process
// does not have, and only to a neighbour.
class BesideDevice final : public testing::PassedOn {
 public:
  using PassedOn::PassedOn;
  const char* transport() const override { return "beside a device"; }
  at::Device device() const override { return at::kMeta; }
  Capabilities capabilities() const override { return {.ordered_messages = true}; }
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    return PassedOn::all_reduce(on_host(tensor));
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    return PassedOn::send(on_host(tensor), to, tag);
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    return PassedOn::receive(on_host(tensor), from, tag);
  }
  void broadcast(const at::Tensor& tensor, int root) override { PassedOn::broadcast(on_host(tensor), root); }

 private:
  static const at::Tensor& on_host(const at::Tensor& tensor) {
    if (!tensor.is_cpu()) throw std::runtime_error("a tensor that is not in host memory");
    return tensor;
  }
};

TEST_CASE("weights of stages on GPUs reach the first stage through host memory, even from distant stages") {
  const tests::ScratchFolder folder;
  const auto file = folder.path() / weights_file_name;
  const testing::ParityModel model = testing::parity_model("mlp");
  experiments::Run run = testing::parity_run(model, {.name = "mp", .kind = "mp", .stages = 3});
  run.strategy.boundaries = {2, 4};
  testing::run_mesh({1, 3}, [&](Connections& ranks) {
    ranks.stages = std::make_unique<BesideDevice>(std::move(ranks.stages));
    const networks::Network stage = build_stage(resolve(run), model.input, ranks, at::kFloat);
    WeightSaver("last", file, ranks).epoch_done(stage, MetricSums(find_task("classification")));
  });
  const networks::Network whole =
      networks::build_network(run.model, run.hyperparameters, model.input, run.seed);
  const auto kept = networks::parse_safetensors(read_text(file), "weights");
  const auto expected = whole.state();
  REQUIRE(kept.size() == expected.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CAPTURE(expected[i].name);
    CHECK(kept[i].name == expected[i].name);
    CHECK(at::equal(kept[i].value, expected[i].value.detach()));
  }
}

}  // namespace
