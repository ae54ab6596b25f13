// The runner compared with PyTorch, if there is a Python with torch.
// The MLP and the CNN train from the same weights on the same batches, in float64.
// Two ranks are compared with PyTorch's DDP, ZeroRedundancyOptimizer, FSDP2 and tensor parallelism, replicas and servers
// with messages of torch.distributed.rpc, and an MLP in bfloat16 with autocast.
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runner/trainer/whole_tensors.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/number_files.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::pytorch_test {

using namespace testing;
using trainyard::tests::ScratchFolder;

constexpr std::int64_t batch = 12;  // divides evenly among 2 ranks
constexpr std::int64_t steps = 12;

struct Case {
  std::string name;
  models::ImageShape shape;
  experiments::Run run;
};

Case make_case(const std::string& model, const models::ImageShape& shape,
               const experiments::Optimizer& optimizer, std::int64_t replicas) {
  experiments::Run run = run_of(model, replicas);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{13};
  if (model == "cnn") run.hyperparameters["channels"] = std::vector<std::int64_t>{4, 6};
  run.optimizer = optimizer;
  run.seed = 3;
  const std::string name = model + "-" + optimizer.kind + "-" + std::to_string(optimizer.momentum) + "-" +
                           std::to_string(optimizer.weight_decay) + "-" + std::to_string(shape.channels) +
                           "-" + std::to_string(replicas);
  return {name, shape, run};
}

std::vector<Case> cases() {
  const experiments::Optimizer plain{.kind = "sgd", .learning_rate = 0.1, .momentum = 0, .weight_decay = 0};
  const experiments::Optimizer heavy{
      .kind = "sgd", .learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01};
  const experiments::Optimizer adam{.kind = "adam", .learning_rate = 0.003, .momentum = 0, .weight_decay = 0};
  const experiments::Optimizer decayed{
      .kind = "adam", .learning_rate = 0.003, .momentum = 0, .weight_decay = 0.02};
  std::vector<Case> all;
  for (const auto& optimizer : {plain, heavy, adam, decayed}) {
    all.push_back(make_case("mlp", {1, 9, 8}, optimizer, 1));
    all.push_back(make_case("cnn", {1, 9, 8}, optimizer, 1));
  }
  all.push_back(make_case("mlp", {3, 8, 8}, heavy, 1));
  all.push_back(make_case("cnn", {3, 8, 8}, heavy, 1));
  for (const char* model : {"mlp", "cnn"}) {
    all.push_back(make_case(model, {3, 8, 8}, heavy, 2));
    all.push_back(make_case(model, {1, 9, 8}, adam, 2));
    for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
      all.push_back(make_case(model, {1, 9, 8}, adam, 2));
      all.back().run.strategy.sharding = sharding;
      all.back().name += std::string("-") + sharding;
    }
  }
  for (const auto& optimizer : {heavy, decayed}) {
    all.push_back(make_case("mlp", {1, 8, 8}, optimizer, 1));
    all.back().run.hyperparameters["hidden"] = std::vector<std::int64_t>{12};  // PyTorch needs equal parts
    all.back().name += "-tensor";
    all.back().run.strategy = {.name = "tensor", .kind = "tensor", .tensor = 2, .tensor_split = {1, 3}};
  }
  for (const auto& optimizer : {heavy, adam}) {
    Case& served = all.emplace_back(make_case("mlp", {3, 8, 8}, optimizer, 2));
    served.name += "-servers";
    served.run.strategy.kind = "parameter-server";
    served.run.strategy.servers = 2;
  }
  all.push_back(make_case("mlp", {3, 8, 8}, plain, 1));
  all.back().run.precision = "bfloat16";
  return all;
}

nlohmann::json describe(const Case& c, const models::Images& images) {
  const auto list = [&](const char* name) {
    const auto found = c.run.hyperparameters.find(name);
    return found == c.run.hyperparameters.end() ? std::vector<std::int64_t>{}
                                                : std::get<std::vector<std::int64_t>>(found->second);
  };
  return {{"name", c.name},
          {"model", c.run.model},
          {"shape", {c.shape.channels, c.shape.height, c.shape.width}},
          {"classes", 10},
          {"hidden", list("hidden")},
          {"channels", list("channels")},
          {"seed", c.run.seed},
          {"optimizer",
           {{"kind", c.run.optimizer.kind},
            {"learning_rate", c.run.optimizer.learning_rate},
            {"momentum", c.run.optimizer.momentum},
            {"weight_decay", c.run.optimizer.weight_decay}}},
          {"batch", batch},
          {"steps", steps},
          {"replicas", c.run.strategy.replicas},
          {"tensor", c.run.strategy.tensor},
          {"servers", c.run.strategy.servers},
          {"precision", c.run.precision},
          {"sharding", c.run.strategy.sharding},
          {"images", c.name + ".images"},
          {"labels", images.labels}};
}

bool is_mixed(const Case& c) {
  return c.run.precision == "bfloat16";
}

// Losses of the steps, then all parameters, in the order of the reference.
std::vector<double> train_here(const Case& c, const models::Images& images) {
  const at::ScalarType dtype = is_mixed(c) ? at::kFloat : at::kDouble;
  const auto replicas = static_cast<int>(c.run.strategy.replicas);
  const auto servers = static_cast<int>(c.run.strategy.servers);
  std::vector<double> losses(static_cast<std::size_t>(steps));
  std::vector<double> values;
  std::mutex mutex;
  const auto train = [&](const Connections& ranks) {
    Trainer trainer(resolve(c.run), {c.shape, 10}, ranks, dtype);
    const ImageDataset data = tensors_of(images, dtype, trainer.network().channels_last);
    const at::Tensor order = at::arange(images.size());
    const Sampler sampler(images.size(), batch, ranks.position.replica, replicas);
    for (std::int64_t k = 0; k < steps; ++k) {
      trainer.step(data, sampler.local_batch(data, order, k));
      const std::lock_guard lock(mutex);
      if (ranks.position.part > 0) continue;
      losses[static_cast<std::size_t>(k)] += trainer.take_metrics().loss() / static_cast<double>(batch);
    }
    const auto parameters = whole_tensors(trainer.network().parameters(), *ranks.parts);
    if (ranks.position.replica != 0 || ranks.position.part != 0) return;
    for (const networks::NamedParameter& parameter : parameters) {
      const at::Tensor flat = parameter.value.detach().to(at::kDouble).contiguous().flatten();
      values.insert(values.end(), flat.const_data_ptr<double>(),
                    flat.const_data_ptr<double>() + flat.numel());
    }
  };
  run_mesh({replicas, 1, servers, static_cast<int>(c.run.strategy.tensor)}, train,
           c.run.strategy.sharding.empty() ? "auto" : "gloo");
  losses.insert(losses.end(), values.begin(), values.end());
  return losses;
}

TEST_CASE(
    "networks, optimizers, replicas and parts equal PyTorch, its DDP, ZeRO, FSDP and tensor parallelism") {
  const std::string python = TRAINYARD_TORCH_PYTHON;
  if (python.empty()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  const ScratchFolder folder;
  nlohmann::json descriptions = nlohmann::json::array();
  for (const Case& c : cases()) {
    const models::Images images = random_images(c.shape, batch * steps);
    descriptions.push_back(describe(c, images));
    write_numbers(folder.path() / (c.name + ".images"),
                  tensors_of(images, at::kDouble, false).gather(at::arange(images.size())).inputs[0]);
  }
  std::ofstream(folder.path() / "cases.json") << descriptions;
  const std::string command = python + " tests/runner/trainer/pytorch_reference.py " + folder.path().string();
  REQUIRE(std::system(command.c_str()) == 0);

  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const std::vector<double> expected = read_numbers(folder.path() / (c.name + ".result"));
    const std::vector<double> found = train_here(c, random_images(c.shape, batch * steps));
    REQUIRE(found.size() == expected.size());
    CHECK(largest_difference(found, expected) < (is_mixed(c) ? 1e-5 : 1e-9));
  }
}

}  // namespace trainyard::runner::pytorch_test
