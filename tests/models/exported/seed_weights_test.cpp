// First weights of a seed, read beside a `.pt2` file.
#include "models/exported/seed_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "models/exported/exported.h"
#include "tests/models/exported/pt2_file.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

std::vector<float> items_of(const StoredTensor& tensor) {
  std::vector<float> items(tensor.storage->size() / sizeof(float));
  std::memcpy(items.data(), tensor.storage->data(), items.size() * sizeof(float));
  return items;
}

const StoredTensor& tensor_of(const Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.tensors, name, &StoredTensor::name);
  REQUIRE(found != graph.tensors.end());
  return *found;
}

// The graph of `file` with these weights.
SeedWeights with(const Pt2File& file, const std::string& weights) {
  const ScratchFolder folder;
  file.write(folder / "net.pt2");
  write_text(folder / "net.seed-3.safetensors", weights);
  return with_seed_weights(read_exported(folder / "net.pt2").graph, seed_file(folder / "net.pt2", 3), "abc");
}

}  // namespace

TEST_CASE("weights of a seed replace those of the file, in training and in evaluation") {
  const std::string weights = mlp_weights(1.5F, -2, "abc");
  Pt2File file = mlp();
  file.evaluate_as(mlp("tanh"));
  const SeedWeights found = with(file, weights);
  CHECK(found.sha256 == sha256_hex(weights));
  REQUIRE(found.graph.evaluation != nullptr);
  for (const Graph* graph : {&found.graph, found.graph.evaluation.get()}) {
    CHECK(items_of(tensor_of(*graph, "net.first")) == std::vector<float>(512, 1.5F));
    CHECK(items_of(tensor_of(*graph, "net.second")) == std::vector<float>(320, -2));
  }
}

TEST_CASE("weights get the memory order of the tensor, and become contiguous if it has gaps") {
  Pt2File file = mlp();
  Json& strides = file.weights["config"]["net.first"]["tensor_meta"]["strides"];
  strides = Json::array({{{"as_int", 1}}, {{"as_int", 32}}});  // column by column
  std::string weights = mlp_weights(0, 0, "abc");
  const float item = 7;
  std::memcpy(weights.data() + weights.size() - 3328 + sizeof item, &item, sizeof item);  // row 0, column 1
  const SeedWeights by_columns = with(file, weights);
  CHECK(tensor_of(by_columns.graph, "net.first").strides == std::vector<std::int64_t>{1, 32});
  CHECK(items_of(tensor_of(by_columns.graph, "net.first"))[32] == 7);
  strides = Json::array({{{"as_int", 32}}, {{"as_int", 1}}});  // 16 items between two rows
  file.entries["data/weights/weight_0"] = std::string(4096, '\0');
  const SeedWeights with_gaps = with(file, weights);
  CHECK(tensor_of(with_gaps.graph, "net.first").strides == std::vector<std::int64_t>{16, 1});
  CHECK(items_of(tensor_of(with_gaps.graph, "net.first"))[1] == 7);
}

TEST_CASE("buffers of the file are replaced, others and constants keep their values") {
  Pt2File file = mlp();
  for (const bool persistent : {true, false}) {
    const std::string name = persistent ? "kept" : "left_out";
    file.buffer(name, {10}, persistent);
    const std::string before = persistent ? "linear_1" : "kept_sum";
    file.node("aten.add.Tensor", {{"self", as_tensor(before)}, {"other", as_tensor("b_" + name)}},
              name + "_sum", {-1, 10});
  }
  file.graph()["outputs"] = Json::array({as_tensor("left_out_sum")});
  file.signature()["output_specs"] = Json::array({{{"user_output", {{"arg", as_tensor("left_out_sum")}}}}});
  const SeedWeights found =
      with(file, mlp_weights(4, 0, "abc", [](Json& header) {
             header["net.kept"] = {{"dtype", "F32"}, {"shape", {10}}, {"data_offsets", {0, 40}}};
           }));
  CHECK(items_of(tensor_of(found.graph, "net.kept")) == std::vector<float>(10, 4));
  CHECK(items_of(tensor_of(found.graph, "net.left_out")) == std::vector<float>(10, 0));
}

TEST_CASE("damaged weights and those of another network are refused in one line") {
  const std::string whole = mlp_weights(1, 1, "abc");
  const auto refused = [&](const std::string& weights, const std::string& part) {
    const std::string error = user_error_of([&] { with(mlp(), weights); });
    CHECK_MESSAGE(contains(error, "net.seed-3.safetensors: " + part), error);
    CHECK_MESSAGE(contains(error, "; export the network again"), error);
    CHECK_MESSAGE(error.find('\n') == std::string::npos, error);
  };
  const auto changed = [](const std::function<void(Json&)>& change) {
    return mlp_weights(1, 1, "abc", change);
  };
  refused(mlp_weights(1, 1, "def"), "it belongs to another version of the .pt2 file beside it");
  refused("", "it ends in its first 8 bytes");
  refused(whole.substr(0, 20), "it ends in its header");
  refused(whole.substr(0, whole.size() - 1), "'net.second': its values are not where the header says");
  refused(std::string(8, '\0'), "byte 1: this is not JSON");
  refused(changed([](Json& h) { h = 3; }), "expected an object");
  refused(changed([](Json& h) { h.erase("__metadata__"); }), "the member '__metadata__' is missing");
  refused(changed([](Json& h) { h.erase("net.second"); }), "it has no values for 'net.second'");
  refused(changed([](Json& h) { h["net.first"]["dtype"] = "F64"; }),
          "'net.first': its type or sizes are not");
  refused(changed([](Json& h) {
            h["net.first"]["shape"] = {16, 32};
          }),
          "'net.first': its type or sizes are not");
  refused(changed([](Json& h) { h["net.first"]["shape"] = "x"; }), "'net.first': expected a list");
  for (const Json& offsets : {Json{0, 2044}, Json{-4, 2044}, Json{2048, 0}, Json{0}, Json{2048, 4096}})
    refused(changed([&](Json& h) { h["net.first"]["data_offsets"] = offsets; }),
            "'net.first': its values are not where the header says");
  const ScratchFolder folder;
  const std::string missing =
      user_error_of([&] { with_seed_weights({}, folder / "net.seed-1.safetensors", ""); });
  CHECK_MESSAGE(contains(missing, "net.seed-1.safetensors: cannot be read: No such file"), missing);
}
