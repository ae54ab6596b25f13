// The parity table: every model under every strategy trains what it must. Ranks are compared with the
// reference trainer (runner/parity/reference_trainer.h): 20 steps in float64, and one step in float32, before
// rounding can grow. Each test case is an entry of ctest.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <ATen/Parallel.h>

#include "experiments/run/run_model.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/parity/parity_check.h"
#include "runner/parity/reference_trainer.h"
#include "runner/trainer/whole_tensors.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::parity_test {

using namespace testing;

using Tensors = std::map<std::string, at::Tensor>;  // by name of the parameter

struct Trained {
  std::vector<double> losses;  // per step, mean over the global batch
  Tensors gradients;           // of the last step
  Tensors parameters;
};

// The samples of each step. Batches of 13 out of 40 samples leave one sample for the last step of an epoch,
// so that all other parts are empty.
constexpr std::int64_t global_batch = 13;
constexpr std::int64_t samples = 3 * global_batch + 1;

class Steps {
 public:
  Steps(const Dataset& data, std::uint64_t seed)
      : data_(data), seed_(seed), whole_(data.size(), global_batch, 0, 1) {}
  at::Tensor indices(int step) const {
    const at::Tensor order = epoch_order(data_, global_batch, seed_, 1 + step / whole_.steps());
    const Part part = whole_.global_batch(step % whole_.steps());
    return order.slice(0, part.begin, part.end);
  }

 private:
  const Dataset& data_;
  std::uint64_t seed_;
  Sampler whole_;
};

using Parameters = std::vector<networks::NamedParameter>;

Parameters with_values(Parameters parameters, const std::vector<at::Tensor>& values) {
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].value = whole(values[i]);
  return parameters;
}

void put(Tensors& into, const Parameters& values) {
  for (const auto& [name, value, factors, cut] : values) into[name] = value.detach().to(at::kDouble).clone();
}

Trained train_virtually(const ParityModel& model, const experiments::Run& run, const Mesh& mesh,
                        std::int64_t micro_batches, int steps, at::ScalarType dtype) {
  at::set_num_threads(1);  // as in ranks, because more threads are slower with small tensors
  ReferenceTrainer virtual_mesh(resolve(run), model.input, mesh.replicas, micro_batches, dtype);
  const auto data = data_of(model, samples, dtype, virtual_mesh.network().channels_last);
  const Steps all(*data, run.seed);
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor indices = all.indices(step);
    trained.losses.push_back(virtual_mesh.step(*data, indices, data->weight(indices)));
  }
  put(trained.parameters, virtual_mesh.network().parameters());
  put(trained.gradients, with_values(virtual_mesh.network().parameters(), virtual_mesh.gradients()));
  return trained;
}

Trained train_on_ranks(const ParityModel& model, const experiments::Run& run, const Mesh& mesh, int steps,
                       at::ScalarType dtype, const std::string& communicator) {
  Trained trained;
  trained.losses.resize(static_cast<std::size_t>(steps));
  std::mutex mutex;
  const auto train = [&](const Connections& ranks) {
    Trainer trainer(resolve(run), model.input, ranks, dtype);
    const auto data = data_of(model, samples, dtype, trainer.network().channels_last);
    const Steps all(*data, run.seed);
    for (int step = 0; step < steps; ++step) {
      const at::Tensor indices = all.indices(step);
      const Part part = ranks.position.is_server()
                            ? Part()
                            : part_of({0, indices.size(0)}, ranks.position.replica, mesh.replicas);
      const std::int64_t weight = data->weight(indices);
      trainer.step(*data, indices.slice(0, part.begin, part.end), weight);
      const MetricSums sums = trainer.take_metrics();
      const std::lock_guard lock(mutex);
      if (ranks.position.part > 0) continue;  // all parts have the same loss
      trained.losses[static_cast<std::size_t>(step)] += sums.loss() / static_cast<double>(weight);
    }
    if (!ranks.position.is_server())  // a server has only its own part
      check_equal_parameters(trainer.network().parameters(), *ranks.replicas);
    const Parameters parameters = trainer.network().parameters();
    check_equal_parameters(uncut(parameters), *ranks.parts);
    if (ranks.mesh.tensor > 1 && ranks.mesh.stages == 1)  // another stage may have all split layers
      CHECK(uncut(parameters).size() < parameters.size());
    const Parameters gradients = whole_tensors(with_values(parameters, trainer.gradients()), *ranks.parts);
    const Parameters values = whole_tensors(parameters, *ranks.parts);
    const std::lock_guard lock(mutex);
    if (ranks.position.replica != 0) return;
    put(trained.parameters, values);
    put(trained.gradients, gradients);
  };
  run_mesh(mesh, train, communicator);
  return trained;
}

void check_equal_training(const Trained& many, const Trained& one) {
  CHECK(one.losses.front() != one.losses.back());
  REQUIRE(many.losses.size() == one.losses.size());
  for (std::size_t step = 0; step < one.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(std::abs(many.losses[step] - one.losses[step]) <= 1e-11 * std::abs(one.losses[step]));
  }
  REQUIRE(many.parameters.size() == one.parameters.size());
  for (const auto& each : one.parameters) {
    CAPTURE(each.first);
    // Batch normalisation removes the effect of some biases. They have only rounding.
    CHECK(largest(many.parameters.at(each.first) - each.second) <= 1e-7 * largest(each.second) + 1e-15);
  }
}

void check_equal_first_step(const Trained& many, const Trained& one, bool normalised_parts) {
  // Parts of a value are rounded differently. So an activation may change its sign, as with synchronised normalisation.
  const double tolerance = normalised_parts ? 0.1 : 1e-4;
  CHECK(std::abs(many.losses.at(0) - one.losses.at(0)) <= 1e-5 * std::abs(one.losses.at(0)));
  double squares = 0;
  for (const auto& [name, gradient] : one.gradients) squares += std::pow(euclidean_norm(gradient), 2);
  CHECK(squares > 0);
  REQUIRE(many.gradients.size() == one.gradients.size());
  for (const auto& each : one.gradients) {
    CAPTURE(each.first);
    CHECK(euclidean_norm(many.gradients.at(each.first) - each.second) <=
          tolerance * euclidean_norm(each.second) + 1e-6 * std::sqrt(squares));
  }
}

void check_parity(const std::string& model_name, const experiments::Strategy& strategy,
                  const std::string& communicator = "auto") {
  const ParityModel model = parity_model(model_name);
  if (!model.exported_task.empty() && !have_exported_networks()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  const experiments::Run run = parity_run(model, strategy);
  const experiments::Run in_float32 = parity_run(model, strategy, at::kFloat);
  const Mesh mesh{static_cast<int>(strategy.replicas), static_cast<int>(strategy.stages),
                  static_cast<int>(strategy.servers), static_cast<int>(strategy.tensor)};
  const std::int64_t micro_batches = strategy.micro_batches;
  constexpr int steps = 20;

  const Trained virtual_mesh = train_virtually(model, run, mesh, micro_batches, steps, at::kDouble);
  check_equal_training(train_on_ranks(model, run, mesh, steps, at::kDouble, communicator), virtual_mesh);
  if (!model.batch_norm) {
    check_equal_training(virtual_mesh, train_virtually(model, run, {1, 1}, 1, steps, at::kDouble));
  }
  check_equal_first_step(train_on_ranks(model, in_float32, mesh, 1, at::kFloat, communicator),
                         train_virtually(model, in_float32, mesh, micro_batches, 1, at::kFloat),
                         mesh.tensor > 1 && model.batch_norm);
}

experiments::Strategy strategy(const char* kind, std::int64_t replicas, std::int64_t stages,
                               const char* schedule, std::int64_t micro_batches, std::int64_t servers = 0) {
  return {.name = kind,
          .kind = kind,
          .replicas = replicas,
          .stages = stages,
          .servers = servers,
          .schedule = schedule,
          .micro_batches = micro_batches,
          .boundaries = {}};
}

experiments::Strategy tensor(std::int64_t parts, const char* source) {
  return {.name = "tensor", .kind = "tensor", .tensor = parts, .tensor_source = source};
}

// Replicas of stages of parts.
experiments::Strategy all_axes() {
  experiments::Strategy all = strategy("tensor", 2, 2, "1f1b", 2);
  all.tensor = 2;
  return all;
}

// Over messages. Replicas that share memory do what those of ddp do.
void check_zero(const std::string& model) {
  experiments::Strategy zero = strategy("zero", 3, 1, "", 1);
  zero.sharding = "parameters";
  check_parity(model, zero, "gloo");
}

#define NETWORK_UNDER_EVERY_STRATEGY(model)                            \
  TEST_CASE(model ".single") {                                         \
    check_parity(model, strategy("single", 1, 1, "", 1));              \
  }                                                                    \
  TEST_CASE(model ".ddp-2") {                                          \
    check_parity(model, strategy("ddp", 2, 1, "", 1));                 \
  }                                                                    \
  TEST_CASE(model ".ddp-3") {                                          \
    check_parity(model, strategy("ddp", 3, 1, "", 1));                 \
  }                                                                    \
  TEST_CASE(model ".mp-2") {                                           \
    check_parity(model, strategy("mp", 1, 2, "", 1));                  \
  }                                                                    \
  TEST_CASE(model ".gpipe-2x4") {                                      \
    check_parity(model, strategy("pipeline", 1, 2, "gpipe", 4));       \
  }                                                                    \
  TEST_CASE(model ".1f1b-2x4") {                                       \
    check_parity(model, strategy("pipeline", 1, 2, "1f1b", 4));        \
  }                                                                    \
  TEST_CASE(model ".mp-ddp-2x2") {                                     \
    check_parity(model, strategy("mp-ddp", 2, 2, "1f1b", 2));          \
  }                                                                    \
  TEST_CASE(model ".servers-3x2") {                                    \
    check_parity(model, strategy("parameter-server", 3, 1, "", 1, 2)); \
  }                                                                    \
  TEST_CASE(model ".zero-3") {                                         \
    check_zero(model);                                                 \
  }

// Layers of networks of PyTorch cannot be split.
#define MODEL_UNDER_EVERY_STRATEGY(model)    \
  NETWORK_UNDER_EVERY_STRATEGY(model)        \
  TEST_CASE(model ".tensor-2") {             \
    check_parity(model, tensor(2, "auto"));  \
  }                                          \
  TEST_CASE(model ".tensor-3") {             \
    check_parity(model, tensor(3, "given")); \
  }                                          \
  TEST_CASE(model ".tensor-2x2x2") {         \
    check_parity(model, all_axes());         \
  }

MODEL_UNDER_EVERY_STRATEGY("mlp")
MODEL_UNDER_EVERY_STRATEGY("mlp-rows")
MODEL_UNDER_EVERY_STRATEGY("cnn")
MODEL_UNDER_EVERY_STRATEGY("vgg11")
MODEL_UNDER_EVERY_STRATEGY("nbow")
MODEL_UNDER_EVERY_STRATEGY("seq2seq")
MODEL_UNDER_EVERY_STRATEGY("conv-autoencoder")
MODEL_UNDER_EVERY_STRATEGY("mobilenet-v2")
MODEL_UNDER_EVERY_STRATEGY("gpt")
NETWORK_UNDER_EVERY_STRATEGY("exported-resnet")
NETWORK_UNDER_EVERY_STRATEGY("exported-mobilenet")
NETWORK_UNDER_EVERY_STRATEGY("exported-vit")
NETWORK_UNDER_EVERY_STRATEGY("exported-transformer")
NETWORK_UNDER_EVERY_STRATEGY("exported-gpt")
NETWORK_UNDER_EVERY_STRATEGY("exported-lstm")
NETWORK_UNDER_EVERY_STRATEGY("exported-switching")

// What passes between the stages of a run with two stages.
struct Crossing {
  std::size_t values = 0;
  std::size_t parameters = 0;  // that the first stage reads, too
  std::size_t numbers = 0;     // such as the size of a batch
};

Crossing crossing_of(const ParityModel& model, const experiments::Run& run) {
  const models::Graph graph = experiments::graph_of(run, model.input);
  const auto cut = static_cast<std::size_t>(run.strategy.boundaries.at(0));
  REQUIRE(graph.nodes.at(cut).may_begin_stage);
  Crossing found;
  for (const models::ValueId value : models::crossing(graph, cut)) {
    ++found.values;
    found.parameters += std::ranges::count(graph.tensors, value, &models::StoredTensor::value);
    for (const models::Node& node : graph.nodes)
      if (models::makes_number(node)) found.numbers += std::ranges::count(node.makes, value);
  }
  return found;
}

TEST_CASE("stages of exported networks pass tied parameters, numbers and several tensors") {
  if (!have_exported_networks()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  const std::vector strategies{strategy("mp", 1, 2, "", 1), strategy("pipeline", 1, 2, "gpipe", 4),
                               strategy("pipeline", 1, 2, "1f1b", 4), strategy("mp-ddp", 2, 2, "1f1b", 2)};
  std::map<std::string, int> rows;  // of the table, by what crosses
  std::set<std::pair<std::string, std::int64_t>> cuts;
  for (const char* name : {"resnet", "mobilenet", "vit", "transformer", "gpt", "lstm"}) {
    const ParityModel model = parity_model(std::string("exported-") + name);
    for (const experiments::Strategy& each : strategies) {
      const experiments::Run run = parity_run(model, each);
      const Crossing found = crossing_of(model, run);
      cuts.insert({name, run.strategy.boundaries[0]});
      rows["parameter"] += found.parameters > 0;
      rows["number"] += found.numbers > 0;
      rows["several tensors"] += found.values - found.numbers > 1;
      if (model.name == "exported-gpt") CHECK(found.parameters == 1);
    }
  }
  CHECK(cuts.size() >= 20);
  CHECK(rows["number"] >= 4);
  CHECK(rows["several tensors"] >= 12);
}

TEST_CASE("PyTorch exports networks") {
  if (!have_exported_networks()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  CHECK(std::filesystem::exists(exported_network("exported-gpt", at::kFloat)));
}

}  // namespace trainyard::runner::parity_test
