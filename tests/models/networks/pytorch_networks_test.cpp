// Each network compared with the same model in PyTorch (models/NAME/NAME.py), if there is a Python with
// torch. Both train from the same weights, on the same batches, in float64.
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>
#include <torch/csrc/autograd/variable.h>

#include "models/catalogue.h"
#include "models/networks/network.h"
#include "models/networks/safetensors.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::networks::pytorch_networks_test {

using trainyard::tests::read_text;
using trainyard::tests::ScratchFolder;
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t steps = 10;
constexpr std::int64_t batch = 6;

struct Case {
  std::string name;
  std::string model;
  models::Hyperparameters changes;  // in place of the defaults
  models::InputShape input;
  double learning_rate = 0.1;
};

models::InputShape images(std::int64_t channels, std::int64_t side) {
  return {.image = {channels, side, side}, .classes = 10};
}

std::vector<Case> cases() {
  const models::InputShape text{.image = {}, .classes = 2, .vocabulary = 40, .source_length = 9};
  const models::InputShape pairs{
      .image = {}, .vocabulary = 40, .target_vocabulary = 30, .source_length = 9, .target_length = 8};
  const models::Hyperparameters small{
      {"embedding", std::int64_t{7}}, {"hidden", std::int64_t{8}}, {"dropout", 0.0}};
  return {{"mlp", "mlp", {{"hidden", Integers{13, 11}}}, images(1, 28)},
          {"cnn", "cnn", {{"channels", Integers{4, 6}}, {"hidden", Integers{13}}}, images(3, 32)},
          {"vgg11-compact", "vgg11", {{"width", std::int64_t{4}}}, images(3, 32), 0.05},
          {"vgg11-paper",
           "vgg11",
           {{"width", std::int64_t{2}},
            {"head", std::string("paper")},
            {"head_width", std::int64_t{12}},
            {"dropout", 0.0}},
           images(1, 37),
           0.05},
          {"nbow", "nbow", {{"embedding", std::int64_t{7}}}, text},
          {"seq2seq", "seq2seq", small, pairs},
          {"seq2seq-deep", "seq2seq",
           [&] {
             auto deep = small;
             deep["layers"] = std::int64_t{3};
             return deep;
           }(),
           pairs},
          {"autoencoder-28", "conv-autoencoder", {{"channels", Integers{3, 4, 5}}}, images(1, 28), 1.0},
          {"autoencoder-32", "conv-autoencoder", {{"channels", Integers{3, 4, 5}}}, images(3, 32), 1.0}};
}

models::Hyperparameters hyperparameters(const Case& c) {
  models::Hyperparameters values;
  for (const auto& parameter : models::find_model(c.model).hyperparameters) {
    values[parameter.name] = parameter.fallback.value();
  }
  for (const auto& [name, value] : c.changes) values.at(name) = value;
  return values;
}

// The inputs and targets of all steps: [step, batch, …].
struct Batches {
  Activations inputs;
  at::Tensor target;
};

// Texts of different lengths. In the first step all have the full length, because its operations are counted.
at::Tensor random_tokens(std::int64_t vocabulary, std::int64_t length, std::int64_t seed) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  at::Tensor tokens = at::randint(4, vocabulary, {steps, batch, length}, at::kLong);
  const at::Tensor lengths = at::randint(1, length + 1, {steps, batch, 1}, at::kLong);
  lengths[0].fill_(length);
  return tokens.masked_fill(at::arange(length).ge(lengths), 0);
}

Batches make_batches(const models::InputShape& input) {
  at::manual_seed(1);
  if (input.target_vocabulary > 0) {
    return {{random_tokens(input.vocabulary, input.source_length, 1),
             random_tokens(input.target_vocabulary, input.target_length, 2)},
            random_tokens(input.target_vocabulary, input.target_length, 3)};
  }
  const at::Tensor labels = at::randint(input.classes, {steps, batch}, at::kLong);
  if (input.vocabulary > 0) return {{random_tokens(input.vocabulary, input.source_length, 4)}, labels};
  const auto& [channels, height, width] = input.image;
  return {{at::rand({steps, batch, channels, height, width}, at::kDouble)}, labels};
}

Batches batches_of(const Case& c) {
  Batches batches = make_batches(c.input);
  if (models::find_model(c.model).task == "reconstruction") batches.target = batches.inputs.front();
  return batches;
}

Activations at_step(const Batches& batches, std::int64_t step) {
  Activations inputs;
  for (const at::Tensor& input : batches.inputs) inputs.push_back(input[step]);
  return inputs;
}

at::Tensor loss_of(const std::string& task, const at::Tensor& output, const at::Tensor& target) {
  if (task == "reconstruction") return at::mse_loss(output, target);
  const bool translation = task == "translation";
  return at::cross_entropy_loss(translation ? output.flatten(0, 1) : output, target.flatten(), {},
                                at::Reduction::Mean, translation ? 0 : -100);
}

std::vector<NamedParameter> train(const Case& c, const Network& network) {
  const Batches batches = batches_of(c);
  std::vector<at::Tensor> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const at::Tensor output = network.forward(at_step(batches, step)).front();
    const at::Tensor loss = loss_of(models::find_model(c.model).task, output, batches.target[step]);
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : network.parameters()) {
      at::Tensor(parameter.value).sub_(parameter.value.grad(), c.learning_rate);
      parameter.value.grad().zero_();
    }
    losses.push_back(loss.detach());
  }
  const at::NoGradGuard no_grad;
  ForwardContext evaluation;
  evaluation.training = false;
  std::vector<NamedParameter> results{{"losses", at::stack(losses)},
                                      {"output", network.forward(at_step(batches, 0), evaluation).front()}};
  const auto state = network.state();
  results.insert(results.end(), state.begin(), state.end());
  return results;
}

nlohmann::json to_json(const models::Hyperparameters& values) {
  nlohmann::json object;
  for (const auto& each : values)
    std::visit([&](const auto& value) { object[each.first] = value; }, each.second);
  return object;
}

nlohmann::json describe(const Case& c) {
  return {{"name", c.name},
          {"model", c.model},
          {"task", models::find_model(c.model).task},
          {"hyperparameters", to_json(hyperparameters(c))},
          {"input",
           {{"channels", c.input.image.channels},
            {"height", c.input.image.height},
            {"width", c.input.image.width},
            {"classes", c.input.classes},
            {"vocabulary", c.input.vocabulary},
            {"target_vocabulary", c.input.target_vocabulary}}},
          {"inputs", batches_of(c).inputs.size()},
          {"learning_rate", c.learning_rate}};
}

Network network_of(const Case& c) {
  return build_network(c.model, hyperparameters(c), c.input, 3, at::kDouble);
}

// Train the models of all cases in PyTorch, in one Python process.
void run_pytorch(const std::filesystem::path& folder) {
  nlohmann::json descriptions = nlohmann::json::array();
  for (const Case& c : cases()) {
    descriptions.push_back(describe(c));
    const Batches batches = batches_of(c);
    std::vector<NamedParameter> tensors{{"target", batches.target}};
    for (std::size_t i = 0; i < batches.inputs.size(); ++i) {
      tensors.push_back({"input." + std::to_string(i), batches.inputs[i]});
    }
    write_safetensors(folder / (c.name + ".batches.safetensors"), tensors);
    write_safetensors(folder / (c.name + ".weights.safetensors"), network_of(c).state());
  }
  std::ofstream(folder / "cases.json") << descriptions;
  const std::string command =
      std::string(TRAINYARD_TORCH_PYTHON) + " tests/models/networks/pytorch_networks.py " + folder.string();
  REQUIRE(std::system(command.c_str()) == 0);
}

at::Tensor named(const std::vector<NamedParameter>& values, const std::string& name) {
  for (const NamedParameter& value : values) {
    if (value.name == name) return value.value;
  }
  FAIL("PyTorch has no " << name);
  return {};
}

void check_trained(const Case& c, const std::vector<NamedParameter>& expected) {
  for (const NamedParameter& found : train(c, network_of(c))) {
    CAPTURE(found.name);
    const at::Tensor wanted = named(expected, found.name);
    REQUIRE(found.value.sizes() == wanted.sizes());
    const double scale = std::max(wanted.abs().max().item<double>(), 0.01);
    CHECK((found.value - wanted).abs().max().item<double>() < 1e-9 * scale);
  }
}

void check_operations(const Case& c, const std::vector<NamedParameter>& expected) {
  for (const models::Node& row : models::find_model(c.model).graph(hyperparameters(c), c.input).nodes) {
    CAPTURE(row.path);
    CHECK(named(expected, "flops." + row.path).item<double>() == row.forward_flops * batch);
  }
}

TEST_CASE("each network trains as in PyTorch from the same weights, and PyTorch counts the same operations") {
  if (std::string(TRAINYARD_TORCH_PYTHON).empty()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  const ScratchFolder folder;
  run_pytorch(folder.path());
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const auto expected =
        parse_safetensors(read_text(folder.path() / (c.name + ".result.safetensors")), c.name);
    check_trained(c, expected);
    check_operations(c, expected);
    const at::Tensor losses = named(expected, "losses");
    CHECK(losses[steps - 1].item<double>() != losses[0].item<double>());
  }
}

}  // namespace trainyard::networks::pytorch_networks_test
