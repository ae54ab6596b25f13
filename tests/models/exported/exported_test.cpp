// Networks that PyTorch exported, as graphs.
#include "models/exported/exported.h"

#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "models/exported/operators.h"
#include "tests/models/exported/pt2_file.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

Exported read(const Pt2File& file) {
  const ScratchFolder folder;
  file.write(folder / "net.pt2");
  return read_exported(folder / "net.pt2");
}

std::string stages(const Exported& exported) {  // "101": stages may begin at nodes 0 and 2
  std::string text;
  for (const Node& node : exported.graph.nodes) text += node.may_begin_stage ? '1' : '0';
  return text;
}

std::string blocks(const Exported& exported) {
  std::string text;
  for (const Node& node : exported.graph.nodes) text += node.begins_block ? '1' : '0';
  return text;
}

const std::pair<std::string, Json> batch_norm_flags{"training", {{"as_bool", true}}};

}  // namespace

TEST_CASE("an exported network is a graph with its names, parameters and operations") {
  const Exported exported = read(mlp());
  const Graph& graph = exported.graph;
  CHECK(graph.inputs == 1);
  CHECK(graph.values == 6);
  REQUIRE(graph.nodes.size() == 3);
  const Node& first = graph.nodes[0];
  CHECK(first.path == "linear");
  CHECK(first.kind == "aten.linear.default");
  CHECK(first.module == "net.linear");
  REQUIRE(first.arguments.size() == 2);
  CHECK(first.arguments[1].name == "weight");
  CHECK(std::get<Argument::Read>(first.arguments[1].value).index == 1);
  CHECK(first.reads == std::vector<ValueId>{0, 1});
  CHECK(first.makes == std::vector<ValueId>{3});
  CHECK(first.parameters == 512);
  CHECK(first.forward_flops == 2 * 16 * 32);
  CHECK(graph.nodes[2].forward_flops == 2 * 32 * 10);
  CHECK(graph.outputs == std::vector<ValueId>{5});
  REQUIRE(graph.tensors.size() == 2);
  CHECK(graph.tensors[0].name == "net.first");
  CHECK(graph.tensors[0].sizes == std::vector<std::int64_t>{32, 16});
  CHECK(graph.tensors[0].strides == std::vector<std::int64_t>{16, 1});
  CHECK(graph.tensors[0].storage->size() == 2048);
  float item = 0;
  std::memcpy(&item, graph.tensors[1].storage->data(), sizeof item);
  CHECK(item == 0.5F);
  CHECK(exported.torch == "2.13.0+cpu");
  CHECK(stages(exported) == "111");
  CHECK(blocks(exported) == "111");
}

TEST_CASE("the symbolic number of samples is the batch, another symbol is any size") {
  Pt2File file = mlp();
  file.input("y", {-1, -1}, int64_code);
  Json& sizes = file.graph()["tensor_values"]["y"]["sizes"];
  sizes[1]["as_expr"]["expr_str"] = "s77";
  const Exported exported = read(file);
  REQUIRE(exported.inputs.size() == 2);
  CHECK(exported.inputs[0].name == "x");
  CHECK(exported.inputs[0].sizes == std::vector<std::int64_t>{batch_size, 16});
  CHECK(exported.inputs[1].dtype == Dtype::int64);
  CHECK(exported.inputs[1].sizes == std::vector<std::int64_t>{batch_size, any_size});
  REQUIRE(exported.outputs.size() == 1);
  CHECK(exported.outputs[0].sizes == std::vector<std::int64_t>{batch_size, 10});
}

TEST_CASE("tied parameters are one tensor and count once") {
  Pt2File file = mlp();
  file.parameter("again", {32, 16});
  file.weights["config"]["net.again"] = file.weights["config"]["net.first"];
  file.node("aten.linear.default", {{"input", as_tensor("x")}, {"weight", as_tensor("p_again")}}, "twin",
            {-1, 32});
  const Exported exported = read(file);
  REQUIRE(exported.graph.tensors.size() == 2);
  CHECK(exported.graph.tensors[0].name == "net.first");
  CHECK(exported.graph.nodes[3].reads[1] == exported.graph.nodes[0].reads[1]);
  CHECK(exported.graph.nodes[0].parameters == 512);
  CHECK(exported.graph.nodes[3].parameters == 0);
}

TEST_CASE("tensors that no node reads are left out, and buffers that are not saved are found") {
  Pt2File file = mlp();
  file.parameter("idle", {5});
  file.buffer("scale", {10}, false);
  file.node("aten.mul.Tensor", {{"self", as_tensor("linear_1")}, {"other", as_tensor("b_scale")}}, "mul",
            {-1, 10});
  const Exported exported = read(file);
  REQUIRE(exported.graph.tensors.size() == 3);
  CHECK(exported.graph.tensors[2].name == "net.scale");
  CHECK(exported.graph.tensors[2].role == StoredTensor::Role::buffer);
  CHECK_FALSE(exported.graph.tensors[2].requires_grad);
}

TEST_CASE("no stage begins between a value and the operation that overwrites it") {
  const Exported exported = read(mlp("relu_"));
  CHECK(stages(exported) == "101");
  CHECK(blocks(exported) == "101");
}

TEST_CASE("a view and what overwrites it stay in one stage") {
  Pt2File file = mlp();
  file.node("aten.view.default", {{"self", as_tensor("linear_1")}, {"size", {{"as_ints", {-1, 10}}}}}, "view",
            {-1, 10});
  file.node("aten.exp.default", {{"self", as_tensor("x")}}, "exp", {-1, 16});
  file.node("aten.relu_.default", {{"self", as_tensor("view")}}, "relu_", {-1, 10});
  file.node("aten.neg.default", {{"self", as_tensor("linear_1")}}, "neg", {-1, 10});
  CHECK(stages(read(file)) == "1110001");
}

TEST_CASE("a buffer that is overwritten belongs to one stage") {
  Pt2File file = mlp();
  file.buffer("count", {10});
  file.node("aten.add_.Tensor", {{"self", as_tensor("b_count")}, {"other", {{"as_int", 1}}}}, "add_", {10});
  file.node("aten.neg.default", {{"self", as_tensor("linear_1")}}, "neg", {-1, 10});
  file.node("aten.add.Tensor", {{"self", as_tensor("neg")}, {"other", as_tensor("b_count")}}, "add",
            {-1, 10});
  file.node("aten.exp.default", {{"self", as_tensor("add")}}, "exp", {-1, 10});
  CHECK(stages(read(file)) == "1111001");
}

TEST_CASE("batch normalisation overwrites its statistics, but its result is new memory") {
  Pt2File file = mlp();
  file.buffer("mean", {10});
  file.buffer("var", {10});
  file.node("aten.batch_norm.default",
            {{"input", as_tensor("linear_1")},
             {"running_mean", as_tensor("b_mean")},
             {"running_var", as_tensor("b_var")},
             batch_norm_flags},
            "batch_norm", {-1, 10});
  file.node("aten.relu_.default", {{"self", as_tensor("batch_norm")}}, "relu_", {-1, 10});
  file.node("aten.neg.default", {{"self", as_tensor("relu_")}}, "neg", {-1, 10});
  CHECK(stages(read(file)) == "111101");  // the activations before it are not overwritten

  file.node("aten.exp.default", {{"self", as_tensor("b_mean")}}, "exp", {10});
  CHECK(stages(read(file)) == "1111000");  // the statistics are read in the last node
}

TEST_CASE("the parts of a split are values of one node, and share memory") {
  Pt2File file = mlp();
  Json& split =
      file.node("aten.split.Tensor", {{"self", as_tensor("linear_1")}, {"split_size", {{"as_int", 5}}}},
                "left", {-1, 5});
  split["outputs"] = Json::array({as_tensors({"left", "right"})});
  file.describe("right", {-1, 5});
  file.node("aten.add.Tensor", {{"self", as_tensor("left")}, {"other", as_tensor("right")}}, "add", {-1, 5});
  Exported exported = read(file);
  const Node& node = exported.graph.nodes[3];
  CHECK(node.path == "left");
  CHECK(node.makes.size() == 2);
  CHECK(node.returned == std::vector<Returned>{{.values = 2, .list = true}});
  CHECK(stages(exported) == "11111");
  CHECK(blocks(exported) == "11110");  // two tensors cross before the sum

  file.node("aten.relu_.default", {{"self", as_tensor("right")}}, "relu_", {-1, 5});
  CHECK(stages(read(file)) == "111000");
}

TEST_CASE("integers that nodes compute are values, also in lists") {
  Pt2File file = mlp();
  Json& size =
      file.node("aten.sym_size.int", {{"self", as_tensor("x")}, {"dim", {{"as_int", 0}}}}, "size", {});
  size["outputs"] = Json::array({{{"as_sym_int", {{"as_name", "size"}}}}});
  const Json sizes = Json::array({{{"as_name", "size"}}, {{"as_int", 2}}, {{"as_int", 5}}});
  file.node("aten.view.default", {{"self", as_tensor("linear_1")}, {"size", {{"as_sym_ints", sizes}}}},
            "view", {-1, 2, 5});
  const Exported exported = read(file);
  const Node& view = exported.graph.nodes[4];
  const auto& items = std::get<Argument::List>(view.arguments[1].value);
  REQUIRE(items.size() == 3);
  CHECK(view.reads.at(std::get<Argument::Read>(items[0].value).index) == exported.graph.nodes[3].makes[0]);
  CHECK(std::get<std::int64_t>(items[2].value) == 5);
  CHECK(blocks(exported) == "11111");  // the integer that crosses does not count
}

TEST_CASE("arguments of all kinds are read") {
  Pt2File file = mlp();
  file.node("aten.zeros.default",
            {{"size", {{"as_ints", {2, 3}}}},
             {"dtype", {{"as_scalar_type", 13}}},
             {"layout", {{"as_layout", 7}}},
             {"device", {{"as_device", {{"type", "cuda"}, {"index", 3}}}}},
             {"pin_memory", {{"as_none", true}}},
             {"memory_format", {{"as_memory_format", 4}}},
             {"a", {{"as_float", "-Infinity"}}},
             {"b", {{"as_string", "ab->ba"}}},
             {"c", {{"as_complex", {{"real", 1.5}, {"imag", 2}}}}},
             {"d", {{"as_bools", {true, false}}}}},
            "zeros", {2, 3});
  const auto arguments = read(file).graph.nodes[3].arguments;
  const auto value = [&](std::size_t i) { return arguments.at(i).value; };
  CHECK(std::get<Dtype>(value(1)) == Dtype::bfloat16);
  CHECK(std::holds_alternative<std::monostate>(value(2)));
  CHECK(std::holds_alternative<RunDevice>(value(3)));
  CHECK(std::holds_alternative<std::monostate>(value(4)));
  CHECK(std::get<MemoryOrder>(value(5)) == MemoryOrder::preserve);
  CHECK(std::get<double>(value(6)) < -1e300);
  CHECK(std::get<std::string>(value(7)) == "ab->ba");
  CHECK(std::get<std::complex<double>>(value(8)) == std::complex<double>(1.5, 2));
  CHECK(std::get<bool>(std::get<Argument::List>(value(9)).at(0).value));
}

TEST_CASE("costs of operators follow their sizes, for one sample") {
  Pt2File file;
  file.parameter("filter", {8, 3, 5, 5});
  file.parameter("words", {100, 12});
  file.input("x", {-1, 3, 32, 32});
  file.input("tokens", {-1, 7}, int64_code);
  file.node("aten.conv2d.default", {{"input", as_tensor("x")}, {"weight", as_tensor("p_filter")}}, "conv2d",
            {-1, 8, 28, 28});
  file.node("aten.embedding.default", {{"weight", as_tensor("p_words")}, {"indices", as_tensor("tokens")}},
            "embedding", {-1, 7, 12});
  file.node(
      "aten.scaled_dot_product_attention.default",
      {{"query", as_tensor("embedding")}, {"key", as_tensor("embedding")}, {"value", as_tensor("embedding")}},
      "attention", {-1, 7, 12});
  file.node(
      "aten.einsum.default",
      {{"equation", {{"as_string", "bij, bkj -> bik"}}}, {"tensors", as_tensors({"embedding", "attention"})}},
      "einsum", {-1, 7, 7});
  file.output("conv2d");
  const auto nodes = read(file).graph.nodes;
  CHECK(nodes[0].forward_flops == 2.0 * 8 * 28 * 28 * 3 * 5 * 5);
  CHECK(nodes[1].forward_flops == 0);
  CHECK(nodes[1].forward_bytes == 2.0 * 7 * 12 * 4);  // each row is read and written, as in models/chain.cpp
  CHECK(nodes[2].forward_flops == 2.0 * (7 * 7 * 12 + 7 * 7 * 12));
  CHECK(nodes[3].forward_flops == 2.0 * 7 * 7 * 12);
}

TEST_CASE("complex numbers do not cross to another stage") {
  Pt2File file = mlp();
  file.node("aten.fft_rfft.default", {{"self", as_tensor("linear_1")}}, "rfft", {-1, 6}, 10);
  file.node("aten.abs.default", {{"self", as_tensor("rfft")}}, "abs", {-1, 6});
  file.node("aten.exp.default", {{"self", as_tensor("abs")}}, "exp", {-1, 6});
  CHECK(stages(read(file)) == "111101");
}

TEST_CASE("nodes that draw random numbers for a whole batch are named, dropout is not") {
  Pt2File file = mlp();
  const std::pair<std::string, Json> p{"p", {{"as_float", 0.5}}};
  const std::pair<std::string, Json> train{"train", {{"as_bool", true}}};
  file.node("aten.dropout.default", {{"input", as_tensor("linear_1")}, p, train}, "dropout", {-1, 10});
  file.node("aten.bernoulli.default", {{"self", as_tensor("dropout")}}, "bernoulli", {-1, 10});
  const std::vector<std::pair<std::string, Json>> qkv{
      {"query", as_tensor("dropout")}, {"key", as_tensor("dropout")}, {"value", as_tensor("dropout")}};
  file.node("aten.scaled_dot_product_attention.default", qkv, "plain", {-1, 10});
  auto dropping = qkv;
  dropping.push_back({"dropout_p", {{"as_float", 0.1}}});
  file.node("aten.scaled_dot_product_attention.default", dropping, "dropping", {-1, 10});
  const Exported exported = read(file);
  std::vector<std::string> draws;
  for (const Node& node : exported.graph.nodes)
    if (node.draws) draws.push_back(node.path);
  CHECK(draws == std::vector<std::string>{"bernoulli"});
  CHECK(draws_random_numbers(exported.graph.nodes[3]));
  CHECK_FALSE(draws_for_whole_batch(exported.graph.nodes[3]));
  CHECK_FALSE(draws_random_numbers(exported.graph.nodes[0]));
}

TEST_CASE("the metadata names the task and the reference batch, which can be read") {
  Pt2File file = mlp();
  file.entries["extra/trainyard.json"] =
      R"({"task": "classification", "reference": {"file": "trainyard/reference"}})";
  file.entries["trainyard/reference"] = "bytes";
  const ScratchFolder folder;
  file.write(folder / "net.pt2");
  const Exported exported = read_exported(folder / "net.pt2");
  CHECK(exported.task == "classification");
  CHECK(exported.reference == "trainyard/reference");
  CHECK(exported.metadata == file.entries["extra/trainyard.json"]);
  CHECK(read_exported_entry(folder / "net.pt2", exported.reference) == "bytes");
  const std::string error = user_error_of([&] { read_exported_entry(folder / "net.pt2", "none"); });
  CHECK_MESSAGE(contains(error, "net.pt2: the archive has no entry 'none'"), error);
}

TEST_CASE("the metadata has the rules of random nodes, in training and in evaluation") {
  Pt2File file = mlp("rand_like");
  CHECK(read(file).graph.nodes[1].draws);
  file.entries["extra/trainyard.json"] =
      R"({"by_sample": {"relu": [1, 4], "linear": [0, 0], "other": [0, 0]}, "by_sample_in_evaluation": {"relu": [0, 0]}})";
  const Exported exported = read(file);
  CHECK(exported.graph.nodes[1].by_sample == SampleRule{1, 4});
  CHECK_FALSE(exported.graph.nodes[1].draws);
  CHECK_FALSE(exported.graph.nodes[0].by_sample.has_value());
  CHECK(exported.graph.evaluation->nodes[1].by_sample == SampleRule{0, 0});
}

TEST_CASE("the metadata has the factors of parameter groups") {
  Pt2File file = mlp();
  const std::string name = read(file).graph.tensors.front().name;
  file.entries["extra/trainyard.json"] = R"({"groups": {")" + name + R"(": [0.5, 0], "other": [1, 1]}})";
  CHECK(read(file).graph.tensors.front().factors == GroupFactors{0.5, 0});
  for (const char* wrong : {"[1]", "[-1, 1]", "[1, 1, 1]"}) {
    file.entries["extra/trainyard.json"] = R"({"groups": {")" + name + "\": " + wrong + "}}";
    CHECK(user_error_of([&] { read(file); }) != "");
  }
}

TEST_CASE("a loss is described by the metadata, or the network has one output") {
  Pt2File file = mlp();
  for (const char* about :
       {R"({"loss": {"reduction": "mean"}})", R"({"loss": {"reduction": "other"}})", R"({"loss": {}})"}) {
    file.entries["extra/trainyard.json"] = about;
    CHECK_MESSAGE(user_error_of([&] { read(file); }) != "", about);
  }
}

TEST_CASE("a folder of the archive may have any name, also in another language") {
  Pt2File file = mlp();
  file.folder = "r\xC3\xA9seau";
  CHECK(read(file).graph.nodes.size() == 3);
}

TEST_CASE("operators that reach files, old memory or foreign storages are not allowed") {
  for (const char* name : {"aten.from_file.default", "aten.empty.memory_format", "aten.empty_like.default",
                           "aten.set_.source_Storage", "aten.resize_.default", "aten.as_strided.default",
                           "higher_order.cond", "aten.linear", "aten.linear.default ", ""})
    CHECK_MESSAGE(find_operator(name) == nullptr, name);
  CHECK(find_operator("aten.linear.default") != nullptr);
  CHECK(overwrites(*find_operator("aten.batch_norm.default"), "running_var"));
  CHECK_FALSE(overwrites(*find_operator("aten.batch_norm.default"), "running"));
}
