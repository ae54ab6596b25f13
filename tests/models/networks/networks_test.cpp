#include <set>

#include "base/error.h"
#include "models/catalogue.h"
#include "models/networks/network.h"
#include "models/networks/random_stream.h"
#include "models/samples/tokenizer.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard;
using namespace trainyard::networks;

models::Hyperparameters defaults_of(const models::Model& model) {
  models::Hyperparameters values;
  for (const auto& parameter : model.hyperparameters) values[parameter.name] = parameter.fallback.value();
  return values;
}

// The input with small vocabularies, which are initialised quickly.
models::InputShape small_input(models::InputShape input) {
  for (std::int64_t* size : {&input.vocabulary, &input.target_vocabulary}) *size = *size > 0 ? 50 : 0;
  if (input.classes == 0) input.classes = 3;  // unknown before the user's own images are read
  return input;
}

Activations inputs_of(const models::InputShape& input, std::int64_t batch) {
  const auto tokens = [&](std::int64_t vocabulary, std::int64_t length) {
    return at::randint(models::special_tokens, vocabulary, {batch, length}, at::kLong);
  };
  if (input.target_vocabulary > 0) return {tokens(input.vocabulary, 7), tokens(input.target_vocabulary, 6)};
  if (input.vocabulary > 0) return {tokens(input.vocabulary, 7)};
  return {at::rand({batch, input.image.channels, input.image.height, input.image.width})};
}

std::vector<std::int64_t> output_sizes(const models::Model& model, const models::InputShape& input,
                                       std::int64_t batch) {
  if (model.task == "translation") return {batch, 6, input.target_vocabulary};
  if (model.task == "language-model") return {batch, 7, input.vocabulary};
  if (model.task == "classification") return {batch, input.classes};
  return {batch, input.image.channels, input.image.height, input.image.width};
}

}  // namespace

TEST_CASE("each model of the catalogue has a network with its number of parameters and output shape") {
  for (const models::Model& model : models::catalogue()) {
    CAPTURE(model.name);
    for (const std::string& name : model.datasets) {
      if (name == "csv") continue;  // the number of columns is that of the file: pytorch_training_test.cpp
      const models::InputShape input = small_input(models::input_shape(models::find_dataset(name)));
      const auto nodes = model.graph(defaults_of(model), input).nodes;
      const Network network = build_network(model.name, defaults_of(model), input, 0);
      REQUIRE(network.layers().size() == nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        CHECK(network.layers()[i].path == nodes[i].path);
        CHECK(network.layers()[i].kind == nodes[i].kind);
        std::int64_t parameters = 0;
        for (const auto& parameter : network.layers()[i].parameters) parameters += parameter.value.numel();
        CHECK(parameters == nodes[i].parameters);
      }
      ForwardContext evaluation;
      evaluation.training = false;
      const Activations outputs = network.forward(inputs_of(input, 3), evaluation);
      REQUIRE(outputs.size() == 1);
      CHECK(outputs.front().sizes().vec() == output_sizes(model, input, 3));
    }
  }
}

TEST_CASE("the MLP of the study has 784-250-100-10 units and 222,360 parameters") {
  const auto& mlp = models::find_model("mlp");
  CHECK(build_network("mlp", defaults_of(mlp), {{1, 28, 28}, 10}, 0).parameter_count() ==
        785 * 250 + 251 * 100 + 101 * 10);
}

TEST_CASE("the name of a parameter begins with the path of its layer") {
  const Network network = build_network("mlp", {{"hidden", std::vector<std::int64_t>{5}}}, {{1, 2, 2}, 3}, 0);
  std::vector<std::string> names;
  for (const auto& parameter : network.parameters()) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"1.weight", "1.bias", "3.weight", "3.bias"});
}

TEST_CASE("initial weights depend only on seed and layer path, and not on the type or on other layers") {
  const auto weight = [](std::vector<std::int64_t> hidden, std::uint64_t seed, at::ScalarType dtype) {
    const Network network =
        build_network("mlp", {{"hidden", std::move(hidden)}}, {{1, 4, 4}, 10}, seed, dtype);
    return network.parameters()[0].value.detach();
  };
  const at::Tensor one = weight({6}, 1, at::kFloat);
  CHECK(at::equal(weight({6, 5, 4}, 1, at::kFloat), one));
  CHECK(at::equal(weight({6}, 1, at::kDouble).to(at::kFloat), one));
  CHECK(!at::equal(weight({6}, 2, at::kFloat), one));
  std::set<std::uint64_t> starts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const char* path : {"0", "1", "3", "11"}) starts.insert(stream_seed("weights", seed, path));
  }
  CHECK(starts.size() == 80);
}

TEST_CASE("the seed of a stream is from the SHA-256 of its name") {
  // printf 'weights/7/1' | sha256sum
  CHECK(stream_seed("weights", 7, "1") == 0x349eefed);
}

TEST_CASE("a stage has only its own layers, with the weights that they have in the whole network") {
  const models::InputShape input{{1, 9, 8}, 10};
  const auto& cnn = models::find_model("cnn");
  const Network whole = build_network("cnn", defaults_of(cnn), input, 5);
  const Network first = build_network("cnn", defaults_of(cnn), input, 5, at::kFloat, models::NodeRange{0, 4});
  const Network second =
      build_network("cnn", defaults_of(cnn), input, 5, at::kFloat, models::NodeRange{4, 10});
  CHECK(first.parameter_count() + second.parameter_count() == whole.parameter_count());
  CHECK(second.channels_last);
  CHECK(second.parameters()[0].name == "7.weight");
  const Activations images{at::rand({2, 1, 9, 8})};
  CHECK(at::equal(second.forward(first.forward(images)).front(), whole.forward(images).front()));
  for (const models::NodeRange& wrong : {models::NodeRange{4, 4}, models::NodeRange{9, 11}}) {
    CHECK_THROWS_AS(build_network("cnn", defaults_of(cnn), input, 5, at::kFloat, wrong), InternalError);
  }
}
