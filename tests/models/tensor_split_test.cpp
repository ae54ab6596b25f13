// Which layers are split over ranks, and how. Expected values are counted by hand.
#include "models/tensor_split.h"

#include <map>
#include <numeric>

#include <doctest/doctest.h>

#include "base/error.h"
#include "models/catalogue.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::models;

namespace {

using Layers = std::vector<std::int64_t>;

Graph graph_of(const std::string& name, const InputShape& input, const Hyperparameters& changes = {}) {
  const Model& model = find_model(name);
  Hyperparameters values;
  for (const Parameter& parameter : model.hyperparameters)
    values[parameter.name] = parameter.fallback.value();
  for (const auto& [key, value] : changes) values.at(key) = value;
  return model.graph(values, input);
}

const InputShape digits{.image = {1, 28, 28}, .classes = 10};
const InputShape pictures{.image = {3, 32, 32}, .classes = 10};
const InputShape prose{.image = {0, 0, 0}, .vocabulary = 65, .source_length = 64};

// 0 flatten, 1 linear, 2 relu, 3 linear, 4 relu, 5 linear.
Graph mlp() {
  return graph_of("mlp", digits, {{"hidden", Layers{128, 64}}});
}

std::string error_of(const Graph& graph, std::int64_t parts, const Layers& layers) {
  try {
    graph_of_part(graph, {parts, layers}, 0);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("two split layers in a row are columns and rows, and small layers stay whole") {
  CHECK(cheapest_split(mlp(), 2, 64) == Layers{1, 3});
  CHECK(split_text(mlp(), {2, {1, 3}, 64}) == "1 (columns), 3 (rows)");
  // A layer alone is put together again, and so is the one that follows rows.
  CHECK(split_text(mlp(), {2, {1}, 64}) == "1 (columns, gathered)");
  CHECK(split_text(mlp(), {2, {1, 3, 5}, 64}) == "1 (columns), 3 (rows), 5 (columns, gathered)");
  CHECK(split_text(mlp(), {2, {3, 5}, 64}) == "3 (columns), 5 (rows)");
}

TEST_CASE("parts of a layer cover it, and their sizes differ by at most one") {
  for (const std::int64_t parts : {2, 3, 7}) {
    std::int64_t end = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Cut cut = graph_of_part(mlp(), {parts, {1, 3}}, part).nodes[1].part.value().cut;
      CHECK(cut.begin == end);
      CHECK(cut.units == 128);
      CHECK(cut.size() >= 128 / parts);
      CHECK(cut.size() <= 128 / parts + 1);
      end = cut.end;
    }
    CHECK(end == 128);
  }
}

TEST_CASE("rows behind a flatten are cut between channels") {
  // 0 conv, 1 relu, 2 pool, 3 conv, 4 relu, 5 pool, 6 flatten, 7 linear, 8 relu, 9 linear
  const Graph cnn = graph_of("cnn", digits, {{"channels", Layers{16, 30}}, {"hidden", Layers{128}}});
  const Graph part = graph_of_part(cnn, {4, {3, 7}}, 1);
  CHECK(split_text(cnn, {4, {3, 7}}) == "3 (columns), 7 (rows)");
  const Cut rows = part.nodes[7].part.value().cut;
  CHECK(rows.units == 30);
  CHECK(rows.inner == 7 * 7);
  CHECK(rows.begin == 7);
  CHECK(rows.end == 15);
  CHECK(part.nodes[5].part.value().cut.inner == 1);
  CHECK_FALSE(part.nodes[2].part);
}

TEST_CASE("attention is split by heads, between columns and rows") {
  const Graph gpt = graph_of("gpt", prose, {{"layers", std::int64_t{1}}});
  // 0 token_embedding, 1 dropout, 2 layer_norm, 3 linear, 4 attention, 5 linear, 6 dropout, 7 add, 8 layer_norm,
  // 9 linear, 10 gelu, 11 linear, 12 dropout, 13 add, 14 layer_norm, 15 tied_linear
  CHECK(splittable_layers(gpt) == Layers{0, 3, 4, 5, 9, 11, 15});
  const Layers split = cheapest_split(gpt, 2, 32);
  CHECK(split == Layers{0, 3, 4, 5, 9, 11, 15});
  CHECK(split_text(gpt, {2, {3, 4, 5}}) == "3 (columns), 4 (heads), 5 (rows)");
  const Cut projection = graph_of_part(gpt, {2, {3, 4, 5}}, 1).nodes[3].part.value().cut;
  CHECK(projection.outer == 3);  // queries, keys, values
  CHECK(projection.units == 4);  // heads
  CHECK(projection.inner == 32);
  CHECK(projection.begin == 2);
  CHECK(error_of(gpt, 8, {3, 4, 5}) ==
        "tensor = 8 is more than the 4 heads of layer 4; use fewer parts, or list other layers in "
        "tensor_split");
  CHECK(contains(error_of(gpt, 2, {4}), "attention can only be split together with the layer before it"));
  CHECK(contains(error_of(gpt, 2, {15}), "the same weight"));
  // more parts than heads: the layers around attention are put together
  CHECK(split_text(gpt, {8, {3, 5}}) == "3 (columns, gathered), 5 (columns, gathered)");
}

TEST_CASE("depthwise convolutions and normalisations follow the layer before them") {
  const Graph mobilenet = graph_of("mobilenet-v2", pictures);
  for (const std::int64_t layer : cheapest_split(mobilenet, 2, 128)) {
    CAPTURE(layer);
    CHECK(mobilenet.nodes[static_cast<std::size_t>(layer)].sizes.at("outputs") > 0);
  }
  const Graph part = graph_of_part(mobilenet, {2, cheapest_split(mobilenet, 2, 1'000'000)}, 0);
  std::map<std::string, int> passing;
  for (const Node& node : part.nodes)
    if (node.part && node.part->kind == NodePart::Kind::passes) ++passing[node.kind];
  CHECK(passing["conv2d"] >= 10);
  CHECK(passing["batch_norm2d"] >= 20);
  // A value with two readers, which is added later, stays whole.
  for (std::size_t i = 0; i < part.nodes.size(); ++i)
    if (part.nodes[i].kind == "add") CHECK_FALSE(part.nodes[i].part);
}

TEST_CASE("a named dimension splits all layers that have it") {
  const Graph cnn = graph_of("cnn", digits, {{"channels", Layers{16, 30}}, {"hidden", Layers{128}}});
  const Graph gpt = graph_of("gpt", prose, {{"layers", std::int64_t{1}}});
  CHECK(layers_with(mlp(), {"width"}) == Layers{1, 3, 5});
  CHECK(layers_with(cnn, {"width"}) == Layers{7, 9});
  CHECK(layers_with(cnn, {"channels"}) == Layers{0, 3});
  CHECK(layers_with(gpt, {"width"}) == Layers{3, 5, 9, 11});
  CHECK(layers_with(gpt, {"heads"}) == Layers{3, 4, 5});
  CHECK(layers_with(gpt, {"vocabulary", "heads"}) == Layers{0, 3, 4, 5, 15});
  CHECK(split_text(gpt, {2, layers_with(gpt, {"heads"})}) == "3 (columns), 4 (heads), 5 (rows)");
  CHECK_THROWS_WITH_AS(layers_with(cnn, {"heads"}),
                       "no layer of the model has a dimension heads; its dimensions are channels, width",
                       UserError);
}

TEST_CASE("layers that cannot be split are refused with those that can") {
  CHECK(error_of(mlp(), 2, {0}) == "layer 0 (flatten) cannot be split; tensor_split may name 1, 3, 5");
  CHECK(error_of(mlp(), 2, {1, 9}) ==
        "layer 9 is not one of the model's 6 layers; tensor_split may name 1, 3, 5");
  CHECK(error_of(mlp(), 11, {5}) ==
        "tensor = 11 is more than the 10 outputs of layer 5; use fewer parts, or list other layers in "
        "tensor_split");
  CHECK(error_of(mlp(), 11, {3, 5}) == "no error");  // rows need 11 inputs
  const InputShape pairs{
      .image = {0, 0, 0}, .vocabulary = 50, .target_vocabulary = 60, .source_length = 9, .target_length = 9};
  const Graph seq2seq = graph_of("seq2seq", pairs);
  CHECK(error_of(seq2seq, 2, {2}) ==
        "layer 2 (encoder_lstm) cannot be split; tensor_split may name 0, 5, 10");
  CHECK(error_of(seq2seq, 51, {0}) ==
        "tensor = 51 is more than the 50 tokens of layer 0; use fewer parts, or list other layers in "
        "tensor_split");
  CHECK_THROWS_AS(cheapest_split(mlp(), 1024, 64), UserError);
  Graph exported;
  exported.tensors.emplace_back();
  CHECK_THROWS_AS(splittable_layers(exported), UserError);
}
