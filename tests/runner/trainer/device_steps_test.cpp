// Steps off the CPU: operations on whole tensors give the same results, and the host waits for nothing.
// The tests call these operations on the CPU.

#include "models/networks/dropout.h"
#include "models/networks/layer_kinds.h"
#include "runner/data/image_dataset.h"
#include "runner/data/text_dataset.h"
#include "runner/device/device.h"
#include "runner/gradients/clipping.h"
#include "runner/training/rank_records.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/fake_mark.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/runner/support/operations_of.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::device_steps_test {

TEST_CASE("dropout by tensors equals the loop over samples, for any type and size") {
  const at::Tensor samples = at::tensor({0, 5, 59'999, 1'000'000'007, 5}, at::kLong);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const std::int64_t features : {1, 2, 7, 64}) {
      const at::Tensor like = at::empty({5, 3, features}, dtype);
      for (const double p : {0.1, 0.5, 0.75}) {
        const networks::DropoutStream stream{11, 5, p};
        CHECK(at::equal(networks::dropout_factors_by_tensors(like, samples, stream),
                        networks::dropout_factors(like, samples, stream)));
        // The step number is only on the device.
        const networks::DropoutStream unseen{11, 99, p, at::full({}, 5, at::kLong)};
        CHECK(at::equal(networks::dropout_factors_by_tensors(like, samples, unseen),
                        networks::dropout_factors(like, samples, stream)));
      }
    }
  }
}

TEST_CASE("the mean of words needs no host-device sync, and padding has no weight, even in the gradient") {
  const at::Tensor tokens = at::tensor({4, 2, 9, 0, 7, 0, 0, 0, 3, 3, 3, 5}, at::kLong).view({3, 4});
  at::Tensor weight = at::randn({10, 6}, at::kDouble);
  weight[0].zero_();
  weight.requires_grad_();
  const at::Tensor means = networks::mean_without_sync(weight, tokens);
  const at::Tensor words = tokens.ne(0).to(at::kDouble).unsqueeze(2);
  at::Tensor same = weight.detach().clone().requires_grad_();
  const at::Tensor expected = (at::embedding(same, tokens) * words).sum(1) / words.sum(1);
  CHECK(at::allclose(means, expected, 1e-12, 1e-12));
  const at::Tensor direction = at::randn({3, 6}, at::kDouble);
  (means * direction).sum().backward();
  (expected * direction).sum().backward();
  CHECK(at::allclose(weight.grad(), same.grad(), 1e-12, 1e-12));
  CHECK(weight.grad()[0].abs().max().item<double>() == 0);
}

TEST_CASE("clipping without a host-device sync scales like clipping with one") {
  const auto gradients = [] {
    return std::vector<at::Tensor>{at::full({3}, 4.0F), at::full({2, 2}, -6.0F)};  // norm √192
  };
  for (const double max_norm : {1.0, 13.0, 14.0}) {
    CAPTURE(max_norm);
    const auto looked = gradients(), unseen = gradients();
    clip_gradients(looked, max_norm, [](double squares) { return squares; });
    clip_without_sync(unseen, max_norm, at::kCPU, [](const at::Tensor&) {});
    for (std::size_t i = 0; i < looked.size(); ++i) CHECK(at::equal(looked[i], unseen[i]));
  }
  const auto of_two = gradients();  // another stage has the same again: norm √384
  clip_without_sync(of_two, 1, at::kCPU, [](const at::Tensor& squares) { squares.mul_(2); });
  CHECK(of_two[0][0].item<float>() == doctest::Approx(4 / std::sqrt(384.0)));
  double others = 0;  // a stage without parameters takes part in the sum
  clip_without_sync({}, 1, at::kCPU,
                    [&](const at::Tensor& squares) { others = squares.add_(4).item<double>(); });
  CHECK(others == 4);
  const std::vector<at::Tensor> infinite{at::full({2}, std::numeric_limits<float>::infinity())};
  clip_without_sync(infinite, 1, at::kCPU, [](const at::Tensor&) {});
  CHECK(!infinite[0].isfinite().any().item<bool>());
}

TEST_CASE("a training step reads no value of a tensor, so that a device can work asynchronously") {
  const models::ImageShape shape{.channels = 1, .height = 28, .width = 28};
  const models::Images images = testing::random_images(shape, 40);
  for (const char* model : {"mlp", "cnn", "conv-autoencoder"}) {
    CAPTURE(model);
    experiments::Run run = testing::run_of(model, 1);
    run.optimizer.clip_norm = 0;
    const Connections alone = unconnected();
    Trainer trainer(resolve(run), {.image = shape, .classes = 10}, alone);
    const ImageDataset data(images, channel_statistics(images), trainer.task().target(), at::kFloat,
                            trainer.network().channels_last);
    const at::Tensor indices = at::arange(16);
    const auto called = testing::operations_of([&] { trainer.step(data, indices, data.weight(indices)); });
    CHECK(called.contains("aten::index_select"));
    for (const char* waits : {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero",
                              "aten::masked_select", "aten::equal"}) {
      CAPTURE(waits);
      CHECK(!called.contains(waits));
    }
  }
}

TEST_CASE("a network is built on the requested device, and its loss is computed there") {
  const experiments::Run run = testing::run_of("mlp", 1);
  const models::InputShape input{.image = {.channels = 1, .height = 28, .width = 28}, .classes = 10};
  const at::Device meta = at::kMeta;  // has no values and cannot be mixed with the CPU
  const networks::Network network =
      networks::build_network(run.model, run.hyperparameters, input, run.seed, at::kFloat, {}, meta);
  for (const auto& parameter : network.state()) CHECK(parameter.value.device() == meta);
  const at::Tensor output = network.forward({at::empty({16, 1, 28, 28}, at::TensorOptions(meta))}).front();
  CHECK(output.device() == meta);
  const at::Tensor labels = at::empty({16}, at::TensorOptions(meta).dtype(at::kLong));
  CHECK(find_task("classification").loss_sum(output, labels).device() == meta);
  CHECK(find_task("classification").counts[0].of({output}, labels).device() == meta);
}

TEST_CASE("rows that are fetched for a device are the requested rows") {
  const at::Tensor rows = at::arange(60, at::kFloat).view({20, 3});
  const at::Tensor indices = at::tensor({7, 0, 7, 19}, at::kLong);
  CHECK(at::equal(fetched(rows, indices, at::kCPU), rows.index_select(0, indices)));
}

TEST_CASE("off the CPU, every batch of texts has the length of the longest text of all") {
  models::Texts texts;
  texts.tokens.offsets = {0, 2, 7, 8};
  texts.tokens.tokens = {4, 5, 1, 2, 3, 4, 5, 9};
  texts.labels = {0, 1, 1};
  TextDataset split(texts);
  const at::Tensor indices = at::tensor({2, 0}, at::kLong);
  CHECK(split.inputs(indices).front().size(1) == 2);
  split.serve(at::kCPU, true);
  CHECK(at::equal(split.inputs(indices).front(),
                  at::tensor({9, 0, 0, 0, 0, 4, 5, 0, 0, 0}, at::kLong).view({2, 5})));
  CHECK(split.shape(indices) == std::vector<std::int64_t>{2, 5});
  CHECK(at::equal(split.targets(indices), at::tensor({1, 0}, at::kLong)));
}

TEST_CASE("metric sums that were taken stay unchanged, and new sums begin at zero in the same memory") {
  MetricSums sums(find_task("classification"));
  const auto add = [&] { sums.add(at::full({}, 3.5), {at::eye(4)}, at::arange(4), 4); };
  add();
  const MetricSums first = sums.take();
  add();
  add();
  CHECK(first.loss() == 3.5);
  CHECK(first.correct() == 4);
  CHECK(first.weight() == 4);
  CHECK(sums.loss() == 7);
  CHECK(sums.weight() == 8);
}

TEST_CASE("asynchronous metrics are those at the time of their copy, and nothing waits for the device") {
  double given = 0, now = 0;
  MetricSums sums(find_task("classification"));
  AsyncMetrics seen(at::kCPU, [&] { return std::make_unique<testing::FakeMark>(given, now); });
  const auto step = [&] {
    given += 1;
    sums.add(at::full({}, 2.5), {at::eye(4)}, at::arange(4), 4);
    return seen.poll(sums);
  };
  CHECK_FALSE(step());  // its copy is pending
  CHECK_FALSE(step());
  now = 1;
  const auto first = step();  // the copy of step 3 begins
  REQUIRE(first);
  CHECK(first->loss == 2.5);
  CHECK(first->correct == 4);
  CHECK(first->weight == 4);
  now = given;
  CHECK(step()->loss == 7.5);
  seen.begin();  // a new epoch: pending copies of the old one are dropped
  sums.take();
  CHECK_FALSE(step());
  now = given;
  CHECK_FALSE(step());
  now = given;
  CHECK(step()->loss == 5);
}

TEST_CASE("metrics on a CPU are available at once, without accuracy if it is undefined") {
  AsyncMetrics seen(at::kCPU, {});
  MetricSums sums(find_task("reconstruction"));
  sums.add(at::full({}, 3.0), {at::ones({2})}, at::zeros({2}), 2);
  const auto now = seen.poll(sums);
  REQUIRE(now);
  CHECK(now->loss == 3);
  CHECK_FALSE(now->correct);
  CHECK(now->weight == 2);
}

TEST_CASE("the first record of a rank has the settings of its GPU") {
  const tests::ScratchFolder folder;
  const experiments::Launch launch = testing::launch_of(folder.path(), 1, 1);
  {
    RankRecords records(launch, 0);
    records.start(launch, {}, "none", 1, {}, 1, {},
                  GpuSettings{"NVIDIA H200", true, "stages exchange messages"});
  }
  const auto gpu = testing::records_of(launch, 0).at(0).at("gpu");
  CHECK(gpu.at("model") == "NVIDIA H200");
  CHECK(gpu.at("channels_last") == true);
  CHECK(gpu.at("cudnn_autotuning") == true);
  CHECK(gpu.at("replayed_steps") == false);
  CHECK(gpu.at("why_not_replayed") == "stages exchange messages");
}

TEST_CASE("a capture that fails during training is recorded as a warning, once") {
  const tests::ScratchFolder folder;
  const experiments::Launch launch = testing::launch_of(folder.path(), 1, 1);
  {
    RankRecords records(launch, 0);
    records.start(launch, {}, "none", 1, {}, 1, {}, GpuSettings{"NVIDIA H200", true, ""});
    for (const char* why : {"", "operation not permitted", "operation not permitted"})
      records.replayed_steps(why);
  }
  const auto all = testing::records_of(launch, 0);
  REQUIRE(all.size() == 2);
  CHECK(all[1].at("type") == "message");
  CHECK(all[1].at("level") == "warning");
  CHECK(all[1].at("text") == "steps are no longer replayed as CUDA graphs: operation not permitted");
}

TEST_CASE("if steps are never replayed, or there is no GPU, there is no warning") {
  const tests::ScratchFolder folder;
  const experiments::Launch launch = testing::launch_of(folder.path(), 1, 2);
  for (const int rank : {0, 1}) {
    RankRecords records(launch, rank);
    records.start(launch, {}, "none", 1, {}, 1, {},
                  rank == 0 ? std::optional(GpuSettings{"NVIDIA H200", true, "stages"}) : std::nullopt);
    records.replayed_steps("stages");
  }
  for (const int rank : {0, 1}) CHECK(testing::records_of(launch, rank).size() == 1);
}

TEST_CASE("data is stored on a GPU if it leaves half of the free memory to the network") {
  CHECK(fits_beside_network(50, 100));
  CHECK(!fits_beside_network(51, 100));
  CHECK(!fits_beside_network(1, 0));
}

TEST_CASE("the CPU has no peak of device memory, and synchronising it does nothing") {
  CHECK(device_memory(at::kCPU).peak_bytes == 0);
  CHECK(device_memory(at::kCPU).free_bytes == 0);
  CHECK(!DeviceMeter(at::kCPU).use().peak_bytes);
  CHECK_NOTHROW(synchronize(at::kCPU));
}

}  // namespace trainyard::runner::device_steps_test
