// Skip connections: no layer overwrites a value that another layer still reads.
// Each network is compared bit by bit with the same network without in-place operators.
#include <functional>
#include <utility>

#include <torch/csrc/autograd/variable.h>

#include "models/catalogue.h"
#include "models/chain.h"
#include "models/networks/network.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::networks::skip_connections_test {

using models::Chain;
using models::InputShape;

constexpr std::int64_t steps = 20, batch = 6, width = 5;
constexpr double learning_rate = 0.1;
const InputShape numbers{.image = {width, 1, 1}, .classes = width};

using Forward = std::function<Activations(const Activations&, const ForwardContext&)>;

Layer custom(const std::string& path, Forward forward) {
  return {path, "custom", {}, {}, std::move(forward)};
}

Layer last_of(const Chain& chain, const std::string& path = "") {
  models::Node node = chain.graph().nodes.back();
  if (!path.empty()) node.path = path;
  return make_layer(node, {3, at::kDouble});
}

Layer linear(const std::string& path) {
  return last_of(Chain(numbers).linear(width), path);
}

// The relu of the catalogue, or one that never overwrites its input.
Layer relu(bool may_overwrite) {
  if (may_overwrite) return last_of(Chain(numbers).relu());
  return custom("relu", [](const Activations& inputs, const ForwardContext&) {
    return Activations{at::relu(inputs.front())};
  });
}

Layer view() {
  return custom("view", [](const Activations& inputs, const ForwardContext&) {
    return Activations{inputs.front().view({-1})};
  });
}

Layer add() {
  return custom("add", [](const Activations& inputs, const ForwardContext&) {
    return Activations{inputs.at(0) + inputs.at(1).view_as(inputs.at(0))};
  });
}

// A network of given layers. Value 0 is its input.
class Builder {
 public:
  // Returns the value that `layer` makes.
  models::ValueId add(Layer layer, std::vector<models::ValueId> reads) {
    graph_.nodes.push_back(
        {.path = layer.path, .kind = layer.kind, .reads = std::move(reads), .makes = {graph_.values}});
    layers_.push_back(std::move(layer));
    return graph_.values++;
  }
  // Each layer reads what the one before makes. Returns the last value.
  models::ValueId add_all(std::vector<Layer> layers, models::ValueId first) {
    for (Layer& layer : layers) first = add(std::move(layer), {first});
    return first;
  }
  Network network(models::ValueId output) {
    graph_.outputs = {output};
    return {graph_, {0, graph_.nodes.size()}, layers_};
  }

 private:
  models::Graph graph_;
  std::vector<Layer> layers_;
};

Network network_of(std::vector<Layer> layers) {
  Builder builder;
  const models::ValueId output = builder.add_all(std::move(layers), 0);
  return builder.network(output);
}

// A layer that contains others, and reads its input after them.
Layer residual(const Layer& first, const Layer& second) {
  Layer layer = custom("residual", [first, second](const Activations& inputs, const ForwardContext& context) {
    const Activations inside = second.forward(first.forward(inputs, context), context);
    return Activations{inputs.front() + inside.front()};
  });
  layer.parameters = second.parameters;
  return layer;
}

Layer sigmoid() {
  return last_of(Chain(numbers).sigmoid());
}

struct Trained {
  std::vector<at::Tensor> values;  // the losses, then all parameters
};

Trained train(const Network& network) {
  at::manual_seed(1);
  Trained trained;
  for (std::int64_t step = 0; step < steps; ++step) {
    const at::Tensor x = at::randn({batch, width}, at::kDouble);
    const at::Tensor labels = at::randint(width, {batch}, at::kLong);
    const at::Tensor loss = at::cross_entropy_loss(network.forward({x}).front(), labels);
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : network.parameter_values()) {
      at::Tensor(parameter).sub_(parameter.grad(), learning_rate);
      parameter.grad().zero_();
    }
    trained.values.push_back(loss.detach());
  }
  for (const at::Tensor& parameter : network.parameter_values()) trained.values.push_back(parameter.detach());
  return trained;
}

using Build = std::function<Network(bool may_overwrite)>;

void check_equal_without_overwriting(const Build& build) {
  const Trained found = train(build(true)), expected = train(build(false));
  REQUIRE(found.values.size() == expected.values.size());
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    CAPTURE(i);
    CHECK(at::equal(found.values[i], expected.values[i]));
  }
}

TEST_CASE("a network with a skip connection trains exactly as without in-place operators") {
  check_equal_without_overwriting([](bool may_overwrite) {
    Builder builder;
    const auto kept = builder.add(linear("0"), {0});
    const auto inside = builder.add_all({relu(may_overwrite), linear("1")}, kept);
    const auto sum = builder.add(add(), {inside, kept});
    return builder.network(builder.add_all({relu(may_overwrite), linear("2")}, sum));
  });
}

TEST_CASE("so does a network whose skip connection keeps a view of the value") {
  check_equal_without_overwriting([](bool may_overwrite) {
    Builder builder;
    const auto first = builder.add(linear("0"), {0});
    const auto kept = builder.add(view(), {first});
    const auto inside = builder.add_all({relu(may_overwrite), linear("1")}, first);
    return builder.network(builder.add(linear("2"), {builder.add(add(), {inside, kept})}));
  });
}

TEST_CASE("so does a network with a layer that contains others and reads its input after them") {
  check_equal_without_overwriting([](bool may_overwrite) {
    return network_of({linear("0"), residual(relu(may_overwrite), linear("1")), linear("2")});
  });
}

TEST_CASE("a relu does not overwrite the output of a layer whose backward pass needs it") {
  check_equal_without_overwriting([](bool may_overwrite) {
    return network_of({linear("0"), sigmoid(), relu(may_overwrite), linear("1")});
  });
}

TEST_CASE("a relu does not overwrite the input of another layer whose backward pass needs it") {
  check_equal_without_overwriting([](bool may_overwrite) {
    Builder builder;
    const auto first = builder.add(linear("0"), {0});
    const auto side = builder.add(linear("1"), {first});
    const auto inside = builder.add_all({relu(may_overwrite), linear("2")}, first);
    return builder.network(builder.add(add(), {inside, side}));
  });
}

TEST_CASE("a network does not overwrite its inputs, even if they have a gradient") {
  const Network network = network_of({relu(true), linear("0")});
  const at::Tensor leaf = at::full({1, width}, -1, at::kDouble).requires_grad_();
  const at::Tensor given = leaf * 1;
  const at::Tensor output = network.forward({given}).front();
  CHECK(given.eq(-1).all().item<bool>());
  output.sum().backward();
  CHECK(leaf.grad().eq(0).all().item<bool>());
}

TEST_CASE(
    "each relu of the catalogue's models overwrites its input in training, because no other layer reads it") {
  int seen = 0;
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const char* name : {"mlp", "cnn", "vgg11", "conv-autoencoder"}) {
      CAPTURE(name);
      const models::Model& model = models::find_model(name);
      models::Hyperparameters values;
      for (const auto& parameter : model.hyperparameters) values[parameter.name] = parameter.fallback.value();
      const InputShape input{.image = {3, 32, 32}, .classes = 10};
      const Network network = build_network(name, values, input, 3, dtype);
      ForwardContext context;
      context.samples = at::arange(2);
      Activations x{at::rand({2, 3, 32, 32}, dtype)};
      if (network.channels_last) x.front() = x.front().contiguous(at::MemoryFormat::ChannelsLast);
      for (const Layer& layer : network.layers()) {
        CAPTURE(layer.path);
        const void* before = x.front().const_data_ptr();
        x = layer.forward(std::move(x), context);
        if (layer.kind != "relu") continue;
        ++seen;
        CHECK(x.front().const_data_ptr() == before);
      }
    }
  }
  CHECK(seen >= 2 * (2 + 3 + 8 + 4));
}

}  // namespace trainyard::networks::skip_connections_test
