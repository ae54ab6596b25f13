// A small network of each kind of task improves on synthetic data, with the real batches, loss, optimizer and
// metrics.
#include "models/catalogue.h"
#include "models/networks/network.h"
#include "runner/data/sampler.h"
#include "runner/data/task.h"
#include "runner/optimizer/optimizer.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::learns_test {

struct Case {
  std::string model;
  const char* dataset;
  models::Hyperparameters sizes;
  std::int64_t samples;
  double learning_rate;
  double ratio;  // upper limit of the last / first epoch's mean loss
};

const std::vector<Case> cases{
    {"mlp", "synthetic-digits", {{"hidden", std::vector<std::int64_t>{32}}}, 600, 0.005, 0.5},
    {"nbow", "synthetic-reviews", {{"embedding", std::int64_t{16}}}, 400, 0.05, 0.7},
    {"conv-autoencoder", "synthetic-digits", {{"channels", std::vector<std::int64_t>{4, 8}}}, 300, 0.01, 0.7},
    {"seq2seq",
     "synthetic-phrases",
     {{"embedding", std::int64_t{16}},
      {"hidden", std::int64_t{24}},
      {"layers", std::int64_t{1}},
      {"dropout", 0.}},
     400,
     0.02,
     0.7},
    {"gpt", "synthetic-prose", {{"layers", std::int64_t{1}}, {"width", std::int64_t{32}}}, 300, 0.01, 0.9},
};

networks::Network small_network(const Case& c, const models::InputShape& input) {
  models::Hyperparameters values = c.sizes;
  for (const auto& parameter : models::find_model(c.model).hyperparameters) {
    values.try_emplace(parameter.name, parameter.fallback.value());
  }
  return networks::build_network(c.model, values, input, 1);
}

// The mean loss of each epoch.
std::vector<double> train(const networks::Network& network, const Task& task, const Dataset& data,
                          double learning_rate) {
  constexpr std::int64_t batch = 20, epochs = 5;
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : network.parameters()) parameters.push_back(parameter.value);
  const auto optimizer =
      make_optimizer({.kind = "adam", .learning_rate = learning_rate, .momentum = 0}, parameters);
  std::vector<double> losses;
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    MetricSums sums(task);
    for (const at::Tensor& indices : epoch_order(data, batch, 1, epoch).split(batch)) {
      const Batch part = data.gather(indices);
      const at::Tensor outputs = network.forward(part.inputs).front();
      const at::Tensor loss = task.loss_sum(outputs, part.targets);
      const std::int64_t weight = data.weight(indices);
      sums.add(loss, {outputs}, part.targets, weight);
      loss.backward(at::full_like(loss, 1. / static_cast<double>(weight)));
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
      optimizer->step(gradients);
      for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    }
    losses.push_back(sums.loss() / static_cast<double>(sums.weight()));
  }
  return losses;
}

TEST_CASE("the loss of a small network for every task falls on synthetic data") {
  for (const Case& c : cases) {
    CAPTURE(c.model);
    models::DataChoice choice;
    choice.dataset = choice.source = c.dataset;
    choice.train_samples = c.samples;
    const models::InputShape input = models::facts(models::find_dataset(c.dataset), {}, choice).input;
    const Task& task = find_task(models::find_model(c.model).task);
    const networks::Network network = small_network(c, input);
    const DataParts data = make_parts(models::read(choice), task, at::kFloat, network.channels_last);
    const std::vector<double> losses = train(network, task, *data.train, c.learning_rate);
    CAPTURE(losses.front());
    CAPTURE(losses.back());
    CHECK(losses.back() < c.ratio * losses.front());
  }
}

}  // namespace trainyard::runner::learns_test
