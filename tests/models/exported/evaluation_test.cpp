// The evaluation graph of an exported network, and where its stages begin.
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "models/exported/exported.h"
#include "tests/models/exported/pt2_file.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

constexpr std::int64_t batch = -1;

Exported read_evaluated(const Pt2File& file) {
  const ScratchFolder folder;
  file.write(folder / "net.pt2");
  return read_exported(folder / "net.pt2");
}

std::string error_of(const Pt2File& file) {
  return user_error_of([&] { read_evaluated(file); });
}

// "0 3 -": where the stages that begin at the nodes begin in evaluation. "-" if none can begin.
std::string stage_begins(const Exported& exported) {
  std::string text;
  for (const Node& node : exported.graph.nodes)
    text += (text.empty() ? "" : " ") + (node.may_begin_stage ? std::to_string(node.in_evaluation) : "-");
  return text;
}

void negate(Pt2File& file, const std::string& value, const std::vector<std::int64_t>& sizes) {
  file.node("aten.neg.default", {{"self", as_tensor(value)}}, value + "_neg", sizes);
}

void multiply(Pt2File& file, const std::string& value, const std::string& by, const std::string& result) {
  file.node("aten.mul.Tensor", {{"self", as_tensor(value)}, {"other", as_tensor(by)}}, result, {batch, 10});
}

// Two linear layers, as `mlp`, but the output is another value.
Pt2File two_layers() {
  Pt2File file = mlp();
  file.graph()["outputs"] = Json::array();
  file.signature()["output_specs"] = Json::array();
  return file;
}

Pt2File scaled_by_constant(float item) {
  Pt2File file = two_layers();
  file.constant("lifted_tensor_0", {10}, item);
  multiply(file, "linear_1", "c_lifted_tensor_0", "scaled");
  file.output("scaled");
  return file;
}

float first_item(const Graph& graph, const std::string& name) {
  float item = 0;
  for (const StoredTensor& tensor : graph.tensors)
    if (tensor.name == name) std::memcpy(&item, tensor.storage->data(), sizeof item);
  return item;
}

}  // namespace

TEST_CASE("a file without an evaluation graph is refused with the way to export it again") {
  const ScratchFolder folder;
  Pt2File file = mlp();
  file.entries["trainyard/evaluation/model.json"] = "";
  file.write(folder / "empty.pt2");
  CHECK(contains(user_error_of([&] { read_exported(folder / "empty.pt2"); }),
                 "trainyard/evaluation/model.json: "));
  file.without = "trainyard/evaluation/model.json";
  file.write(folder / "old.pt2");
  CHECK(user_error_of([&] { read_exported(folder / "old.pt2"); }) ==
        (folder / "old.pt2").string() +
            ": it has no graph for evaluation; export the network again with `trainyard export "
            "FILE.py:FUNCTION`");
}

TEST_CASE("both graphs have the weights of the file, and each has its own constants") {
  Pt2File file = scaled_by_constant(3);
  file.evaluate_as(scaled_by_constant(5));
  const Exported exported = read_evaluated(file);
  REQUIRE(exported.graph.evaluation);
  const Graph& evaluation = *exported.graph.evaluation;
  CHECK(first_item(exported.graph, "lifted_tensor_0") == 3);
  CHECK(first_item(evaluation, "lifted_tensor_0") == 5);
  REQUIRE(evaluation.tensors.size() == 3);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(evaluation.tensors[i].name == exported.graph.tensors[i].name);
    CHECK(evaluation.tensors[i].storage == exported.graph.tensors[i].storage);
  }
}

TEST_CASE("a buffer that is not saved is shared by both graphs") {
  Pt2File file = two_layers();
  file.buffer("scale", {10}, false);
  multiply(file, "linear_1", "b_scale", "scaled");
  file.output("scaled");
  Pt2File evaluation = file;
  evaluation.constants["config"] = Json::object();
  evaluation.entries.clear();
  file.evaluate_as(evaluation);
  const Exported exported = read_evaluated(file);
  CHECK(exported.graph.evaluation->tensors.back().storage == exported.graph.tensors.back().storage);
}

TEST_CASE("an evaluation graph with other inputs or outputs is refused") {
  const std::string error = "inputs or outputs in evaluation have other sizes or types than in training";
  Pt2File narrow = mlp();
  narrow.graph()["tensor_values"]["linear_1"]["sizes"][1]["as_int"] = 9;
  Pt2File file = mlp();
  file.evaluate_as(narrow);
  CHECK(contains(error_of(file), error));
  Pt2File more = mlp();
  more.input("y", {batch, 2});
  file.evaluate_as(more);
  CHECK(contains(error_of(file), error));
}

TEST_CASE("a stage has the same parameters in both graphs") {
  Pt2File evaluation = mlp();  // exp, linear, relu, linear
  evaluation.node("aten.exp.default", {{"self", as_tensor("x")}}, "exp", {batch, 16});
  Json first = evaluation.nodes().back();
  evaluation.nodes().erase(3);
  evaluation.nodes().insert(evaluation.nodes().begin(), first);
  Pt2File file = mlp();  // linear, relu, linear
  file.evaluate_as(evaluation);
  CHECK(stage_begins(read_evaluated(file)) == "0 3 3");
}

TEST_CASE("a stage without parameters may have no nodes in evaluation") {
  Pt2File file = two_layers();
  negate(file, "linear_1", {batch, 10});
  file.output("linear_1_neg");
  file.evaluate_as(mlp());
  CHECK(stage_begins(read_evaluated(file)) == "0 2 2 3");
}

TEST_CASE("no stage begins between parameters that evaluation uses in another order") {
  Pt2File evaluation = two_layers();  // reads the second parameter before the first one
  negate(evaluation, "p_second", {10, 32});
  Json second = evaluation.nodes().back();
  evaluation.nodes().erase(3);
  evaluation.nodes().insert(evaluation.nodes().begin(), second);
  negate(evaluation, "linear_1", {batch, 10});
  evaluation.output("linear_1_neg");
  Pt2File file = two_layers();
  negate(file, "linear_1", {batch, 10});
  file.output("linear_1_neg");
  file.evaluate_as(evaluation);
  CHECK(stage_begins(read_evaluated(file)) == "0 - - 5");
}

TEST_CASE("evaluation reads a buffer that training overwrites only in the stage that overwrites it") {
  const auto counting = [](bool in_training, bool late) {
    Pt2File file = two_layers();
    file.buffer("count", {10});
    if (in_training)
      file.node("aten.add_.Tensor", {{"self", as_tensor("b_count")}, {"other", {{"as_int", 1}}}}, "add_",
                {10});
    multiply(file, "linear_1", "b_count", "scaled");
    negate(file, "scaled", {batch, 10});
    if (late) multiply(file, "scaled_neg", "b_count", "again");
    file.output(late ? "again" : "scaled_neg");
    return file;
  };
  Pt2File file = counting(true, false);      // linear, relu, linear, add_, mul, neg
  file.evaluate_as(counting(false, false));  // linear, relu, linear, mul, neg
  CHECK(stage_begins(read_evaluated(file)) == "0 2 2 3 - 5");
  file.evaluate_as(counting(false, true));
  CHECK(stage_begins(read_evaluated(file)) == "0 2 2 3 - 6");
}

TEST_CASE("a parameter that only evaluation reads does not matter for the stages") {
  Pt2File evaluation = two_layers();
  evaluation.parameter("temperature", {10}, 2);
  multiply(evaluation, "linear_1", "p_temperature", "scaled");
  evaluation.output("scaled");
  Pt2File file = evaluation;
  file.model = mlp().model;
  file.evaluate_as(evaluation);
  const Exported exported = read_evaluated(file);
  CHECK(stage_begins(exported) == "0 2 2");
  CHECK(exported.graph.tensors.size() == 2);
  CHECK(first_item(*exported.graph.evaluation, "net.temperature") == 2);
}
