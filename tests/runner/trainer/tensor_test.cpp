// Layers that are split over ranks: what the ranks exchange, clipping, evaluation, translation and saved weights. The parity
// table (tests/runner/parity) compares whole trainings.
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "models/networks/safetensors.h"
#include "runner/communicator/communicator.h"
#include "runner/parity/parity_check.h"
#include "runner/parity/reference_trainer.h"
#include "runner/trainer/whole_tensors.h"
#include "runner/training/checkpoints.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/launched_ranks.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/passed_on.h"
#include "tests/runner/support/replicas.h"
#include "tests/runner/support/small_runs.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::tensor_test {

using namespace testing;
using trainyard::tests::ScratchFolder;

experiments::Strategy parts_of(std::int64_t parts, std::vector<std::int64_t> layers) {
  return {.name = "tensor",
          .kind = "tensor",
          .tensor = parts,
          .tensor_split = std::move(layers),
          .tensor_source = "given"};
}

// Notes the bytes of each sum.
class Counting final : public testing::PassedOn {
 public:
  Counting(std::unique_ptr<Communicator> through, std::vector<std::size_t>& sums)
      : PassedOn(std::move(through)), sums_(sums) {}
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    if (rank() == 0) sums_.push_back(tensor.nbytes());
    return PassedOn::all_reduce(tensor);
  }

 private:
  std::vector<std::size_t>& sums_;
};

// design/strategies, section 6: MLP 784-128-64-10, two parts, 64 samples.
TEST_CASE("columns and rows exchange one sum of 64 x 64 numbers in a step, and one in evaluation") {
  experiments::Run run = run_of("mlp", 1);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{128, 64};
  run.strategy = parts_of(2, {1, 3});
  const models::InputShape input{.image = {1, 28, 28}, .classes = 10};
  const models::Images images = random_images(input.image, 64);
  std::vector<std::size_t> sums, in_evaluation;
  run_mesh({1, 1, 0, 2}, [&](Connections& ranks) {
    std::vector<std::size_t> own;
    ranks.parts = std::make_unique<Counting>(std::move(ranks.parts), own);
    Trainer trainer(resolve(run), input, ranks);
    const ImageDataset data = tensors_of(images, at::kFloat, false);
    trainer.step(data, at::arange(64), 64);
    if (ranks.position.part == 0) sums = own;
    own.clear();
    trainer.evaluate(data, {64, 64, 0, 1}, [](auto, const auto&) {});
    if (ranks.position.part == 0) in_evaluation = own;
    // of 784 · 128 + 128 + 128 · 64 + 64 + 64 · 10 + 10 parameters
    CHECK(trainer.network().parameter_count() == 784 * 64 + 64 + 64 * 64 + 64 + 650);
  });
  CHECK(sums == std::vector<std::size_t>{16'384});
  CHECK(in_evaluation == std::vector<std::size_t>{16'384});
}

TEST_CASE("a layer between whole values exchanges its outputs forward and its inputs' gradient backward") {
  experiments::Run run = run_of("mlp", 1);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{128, 64};
  run.strategy = parts_of(2, {3});
  const models::InputShape input{.image = {1, 28, 28}, .classes = 10};
  std::vector<std::size_t> sums;
  run_mesh({1, 1, 0, 2}, [&](Connections& ranks) {
    ranks.parts = std::make_unique<Counting>(std::move(ranks.parts), sums);
    Trainer trainer(resolve(run), input, ranks);
    trainer.step(tensors_of(random_images(input.image, 64), at::kFloat, false), at::arange(64), 64);
  });
  CHECK(sums == std::vector<std::size_t>{64 * 64 * 4, 64 * 128 * 4});
}

// Whole parameters count once in the norm of all gradients.
TEST_CASE("clipped gradients are those of one process") {
  for (const char* name : {"mlp", "gpt"}) {
    CAPTURE(name);
    const ParityModel model = parity_model(name);
    // Replicas that share memory have slices of the gradients.
    experiments::Run run =
        parity_run(model, {.name = "tensor", .kind = "tensor", .replicas = 2, .stages = 2, .tensor = 2});
    run.optimizer.clip_norm = 0.01;
    const std::int64_t samples = 13;
    const auto data = data_of(model, samples, at::kDouble, false);
    const std::int64_t weight = data->weight(at::arange(samples));
    ReferenceTrainer reference(resolve(run), model.input, 1, 1, at::kDouble);
    for (int step = 0; step < 3; ++step) reference.step(*data, at::arange(samples), weight);
    double squares = 0;
    for (const at::Tensor& gradient : reference.gradients()) squares += std::pow(euclidean_norm(gradient), 2);
    CHECK(std::abs(std::sqrt(squares) - 0.01) < 1e-4);  // it was clipped
    const ParameterHashes first = parameter_hashes(
        ReferenceTrainer(resolve(run), model.input, 1, 1, at::kDouble).network().parameters());
    std::map<std::string, at::Tensor> expected;
    for (const auto& parameter : reference.network().parameters()) expected[parameter.name] = parameter.value;
    std::set<std::string> found;
    std::mutex mutex;
    run_mesh({2, 2, 0, 2}, [&](const Connections& ranks) {
      Trainer trainer(resolve(run), model.input, ranks, at::kDouble);
      const ParameterHashes own_first =
          parameter_hashes(whole_tensors(trainer.network().parameters(), *ranks.parts));
      const Part own = part_of({0, samples}, ranks.position.replica, 2);
      for (int step = 0; step < 3; ++step) trainer.step(*data, at::arange(own.begin, own.end), weight);
      const std::vector<networks::NamedParameter> parameters =
          whole_tensors(trainer.network().parameters(), *ranks.parts);
      const std::lock_guard lock(mutex);
      for (const auto& [path, hash] : own_first) CHECK(hash == first.at(path));
      for (const auto& parameter : parameters) {
        CAPTURE(parameter.name);
        found.insert(parameter.name);
        CHECK(largest(parameter.value - expected.at(parameter.name)) <= 1e-12);
      }
    });
    CHECK(found.size() == expected.size());
  }
}

TEST_CASE("saved weights are those of the whole network, and a part begins with its part of such a file") {
  const ScratchFolder folder;
  const ParityModel model = parity_model("vgg11");
  experiments::Run run = parity_run(model, {.name = "tensor", .kind = "tensor", .tensor = 2});
  const auto file = folder.path() / "weights.safetensors";
  const auto values = [&] {
    std::map<std::string, at::Tensor> named;
    for (const auto& each : networks::parse_safetensors(trainyard::tests::read_text(file), file.string()))
      named[each.name] = each.value.clone();
    return named;
  };
  run_mesh({1, 1, 0, 2}, [&](const Connections& ranks) {
    const Trainer trainer(resolve(run), model.input, ranks);
    WeightSaver("last", file, ranks).epoch_done(trainer.network(), MetricSums(trainer.task(), at::kCPU));
  });
  const ReferenceTrainer whole(resolve(run), model.input, 1, 1);
  const auto saved = values();
  CHECK(saved.size() == whole.network().state().size());
  for (const auto& tensor : whole.network().state()) {
    CAPTURE(tensor.name);
    CHECK(at::equal(saved.at(tensor.name), tensor.value));
  }
  experiments::Run next = run;
  next.seed = run.seed + 1;
  next.initial = file;
  run_mesh({1, 1, 0, 2}, [&](const Connections& ranks) {
    const Trainer trainer(resolve(next), model.input, ranks);
    for (const auto& parameter : whole_tensors(trainer.network().parameters(), *ranks.parts))
      CHECK(at::equal(saved.at(parameter.name), parameter.value));
  });
}

TEST_CASE("losses and translations are those of one process, and only the first part records them") {
  const auto metrics_of = [](const Shape& shape, const ScratchFolder& folder) {
    experiments::Run run = shaped(small_seq2seq(), shape);
    run.precision = "float64";
    const auto launch = launch_in(folder.path(), run, "");
    train_launched(launch);
    std::vector<nlohmann::json> metrics;
    for (int rank = 0; rank < run.strategy.world_size(); ++rank)
      for (const auto& record : records_of(launch, rank))
        if (record.at("type") == "test") metrics.push_back(record.at("metrics"));
    return metrics;
  };
  const ScratchFolder one, many;
  const auto expected = metrics_of(single, one), found = metrics_of(in_parts, many);
  REQUIRE(found.size() == 2);
  CHECK(found[1].empty());
  REQUIRE(found[0].size() == expected[0].size());
  CHECK(expected[0].dump().find("bleu_1") != std::string::npos);
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    CAPTURE(expected[0][i].dump());
    CHECK(found[0][i].at("name") == expected[0][i].at("name"));
    CHECK(found[0][i].at("weight") == expected[0][i].at("weight"));
    const auto sum = expected[0][i].at("sum").get<double>();
    CHECK(std::abs(found[0][i].at("sum").get<double>() - sum) <= 1e-9 * std::abs(sum));
  }
}

}  // namespace trainyard::runner::tensor_test
