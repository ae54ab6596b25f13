// Damaged and hostile `.pt2` files: each is refused in one line that names the file, what is wrong and what to do.
#include <functional>
#include <limits>
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

struct Hostile {
  std::string error;  // part of the message
  std::function<void(Pt2File&)> change;
};

Json& meta_of(Pt2File& file, const std::string& name = "net.first") {
  return file.weights["config"][name]["tensor_meta"];
}

// Checks the error of `path`: one line, the file, `part` and an advice.
void check_refused(const std::filesystem::path& path, const std::string& part) {
  const std::string error = user_error_of([&] { read_exported(path); });
  CHECK_MESSAGE(contains(error, path.string() + ": "), part << ": " << error);
  CHECK_MESSAGE(contains(error, part), error);
  CHECK_MESSAGE(contains(error, "; "), error);
  CHECK_MESSAGE(error.find_first_of("\n\r\t\x1B") == std::string::npos, error);
  CHECK_MESSAGE(error.size() < 1000, error);
}

void check_all(const std::vector<Hostile>& all) {
  const ScratchFolder folder;
  for (const Hostile& hostile : all) {
    Pt2File file = mlp();
    hostile.change(file);
    file.write(folder / "net.pt2");
    check_refused(folder / "net.pt2", hostile.error);
  }
}

void set_argument(Pt2File& file, const Json& argument) {
  file.nodes()[1]["inputs"][0]["arg"] = argument;
}

const Json constant_input = {{"constant_input", {{"name", "k"}, {"value", {{"as_int", 3}}}}}};

}  // namespace

TEST_CASE("entries that are missing, of another format or not JSON are refused") {
  check_all({
      {"not an archive of torch.export.save", [](Pt2File& f) { f.entries["archive_format"] = "pt1"; }},
      {"not little-endian", [](Pt2File& f) { f.entries["byteorder"] = "big"; }},
      {"model.json: its schema has version 9", [](Pt2File& f) { f.model["schema_version"]["major"] = 9; }},
      {"the member 'schema_version' is missing", [](Pt2File& f) { f.model.erase("schema_version"); }},
      {"the member 'graph_module' is missing", [](Pt2File& f) { f.model.erase("graph_module"); }},
      {"byte 2: this is not JSON", [](Pt2File& f) { f.entries["models/model.json"] = "{x"; }},
      {"this is not JSON", [](Pt2File& f) { f.entries["models/model.json"] = ""; }},
      {"expected an object", [](Pt2File& f) { f.entries["models/model.json"] = "[1]"; }},
      {"deeper than 64 levels",
       [](Pt2File& f) { f.entries["models/model.json"] = std::string(2'000'000, '['); }},
      {"deeper than 64 levels",
       [](Pt2File& f) {
         std::string deep;
         for (int i = 0; i < 500'000; ++i) deep += "{\"a\":";
         f.entries["models/model.json"] = deep;
       }},
      {"'a' is there twice in one object",
       [](Pt2File& f) { f.entries["models/model.json"] = R"({"a": 1, "a": 2})"; }},
      {"model_weights_config.json: byte 1: this is not JSON",
       [](Pt2File& f) { f.entries["data/weights/model_weights_config.json"] = "\xFF"; }},
      {"expected an object",  // must not take quadratic time
       [](Pt2File& f) {
         std::string list = "[{}";
         for (int i = 0; i < 1'000'000; ++i) list += ",{}";
         f.entries["models/model.json"] = list + "]";
       }},
      {"extra/trainyard.json: ", [](Pt2File& f) { f.entries["extra/trainyard.json"] = "[]"; }},
      {"extra/trainyard.json: ",
       [](Pt2File& f) { f.entries["extra/trainyard.json"] = std::string(std::size_t{1} << 21U, ' '); }},
  });
  for (const char* rule : {"[0]", "[-1, 0]", "[64, 0]", "[0, -1]", "[0, 4294967296]"}) {
    Pt2File file = mlp("rand_like");
    file.entries["extra/trainyard.json"] = std::string(R"({"by_sample": {"relu": )") + rule + "}}";
    const ScratchFolder folder;
    file.write(folder / "net.pt2");
    const std::string error = user_error_of([&] { read_exported(folder / "net.pt2"); });
    CHECK_MESSAGE(contains(error, "the rule of the random node 'relu' is not possible"), error);
  }
}

TEST_CASE("weights that do not fit their bytes, are pickled or have unsafe names are refused") {
  check_all({
      {"tensor 'net.first': it is pickled",
       [](Pt2File& f) { f.weights["config"]["net.first"]["use_pickle"] = true; }},
      {"the name of its file, '../../weight_0', is not safe",
       [](Pt2File& f) { f.weights["config"]["net.first"]["path_name"] = "../../weight_0"; }},
      {"'..', is not safe", [](Pt2File& f) { f.weights["config"]["net.first"]["path_name"] = ".."; }},
      {"'/etc/passwd', is not safe",
       [](Pt2File& f) { f.weights["config"]["net.first"]["path_name"] = "/etc/passwd"; }},
      {"'data/weights/weight_7' is missing",
       [](Pt2File& f) { f.weights["config"]["net.first"]["path_name"] = "weight_7"; }},
      {"goes beyond its storage of 2044 bytes",
       [](Pt2File& f) { f.entries["data/weights/weight_0"].resize(2044); }},
      {"goes beyond its storage", [](Pt2File& f) { meta_of(f)["storage_offset"]["as_int"] = 1; }},
      {"goes beyond its storage", [](Pt2File& f) { meta_of(f)["strides"][0]["as_int"] = 17; }},
      {"negative or too large", [](Pt2File& f) { meta_of(f)["storage_offset"]["as_int"] = -1; }},
      {"negative or too large", [](Pt2File& f) { meta_of(f)["strides"][1]["as_int"] = -1; }},
      {"negative or too large",
       [](Pt2File& f) { meta_of(f)["sizes"][0]["as_int"] = std::numeric_limits<std::int64_t>::max(); }},
      {"it has more than 2147483648 bytes",
       [](Pt2File& f) {
         meta_of(f)["sizes"] = {{{"as_int", 1'000'000}}, {{"as_int", 1'000'000}}};
         meta_of(f)["strides"] = {{{"as_int", 0}}, {{"as_int", 0}}};
       }},
      {"all tensors together have more than",
       [](Pt2File& f) {
         for (const char* name : {"net.first", "net.second"}) {
           meta_of(f, name)["sizes"] = {{{"as_int", 300'000'000}}};
           meta_of(f, name)["strides"] = {{{"as_int", 0}}};
         }
       }},
      {"different lengths", [](Pt2File& f) { meta_of(f)["strides"].erase(1); }},
      {"a list has 33 items",
       [](Pt2File& f) {
         meta_of(f)["sizes"] = std::vector<Json>(33, Json{{"as_int", 1}});
       }},
      {"the dtype with the code 11 is not supported", [](Pt2File& f) { meta_of(f)["dtype"] = 11; }},
      {"the dtype with the code -1 is not supported", [](Pt2File& f) { meta_of(f)["dtype"] = -1; }},
      {"not a dense tensor", [](Pt2File& f) { meta_of(f)["layout"] = 1; }},
      {"expected an integer of 64 bits",
       [](Pt2File& f) { meta_of(f)["sizes"][0]["as_int"] = std::numeric_limits<std::uint64_t>::max(); }},
      {"expected an integer of 64 bits", [](Pt2File& f) { meta_of(f)["sizes"][0]["as_int"] = 32.5; }},
      {"parameter 'net.first': the file has no values for it",
       [](Pt2File& f) { f.weights["config"].erase("net.first"); }},
      {"not those that the graph says",
       [](Pt2File& f) { f.graph()["tensor_values"]["p_first"]["sizes"][0]["as_int"] = 31; }},
      {"not those that the graph says",
       [](Pt2File& f) { f.graph()["tensor_values"]["p_first"]["dtype"] = 6; }},
      {"share a part of their memory",
       [](Pt2File& f) {
         f.parameter("part", {16});
         f.weights["config"]["net.part"]["path_name"] = "weight_0";
         f.node("aten.add.Tensor", {{"self", as_tensor("x")}, {"other", as_tensor("p_part")}}, "add",
                {-1, 16});
       }},
      {"items of 'net.first' share memory", [](Pt2File& f) { meta_of(f)["strides"][0]["as_int"] = 0; }},
      {"has control characters",
       [](Pt2File& f) { f.weights["config"]["net\x1B[2J"] = f.weights["config"]["net.first"]; }},
  });
}

TEST_CASE("graphs with forbidden operators, wrong values or cycles are refused with the name of the node") {
  check_all({
      {"node 1 'relu' (aten.from_file.default): this operator is not supported",
       [](Pt2File& f) { f.nodes()[1]["target"] = "torch.ops.aten.from_file.default"; }},
      {"(aten.empty.memory_format): this operator returns memory that nobody has set",
       [](Pt2File& f) { f.nodes()[1]["target"] = "torch.ops.aten.empty.memory_format"; }},
      {"(aten.resize_.default): this operator is not supported",
       [](Pt2File& f) { f.nodes()[1]["target"] = "torch.ops.aten.resize_.default"; }},
      {"(mine.twice.default): this operator is not supported",
       [](Pt2File& f) { f.nodes()[1]["target"] = "torch.ops.mine.twice.default"; }},
      {"(higher_order.cond): it runs a part of the network as a region",
       [](Pt2File& f) { f.nodes()[1]["target"] = "torch.ops.higher_order.cond"; }},
      {"argument 'self': it runs a part of the network as a region",
       [](Pt2File& f) {
         set_argument(f, {{"as_graph", {{"name", "g"}, {"graph", Json::object()}}}});
       }},
      {"arguments of the kind 'as_custom_obj' are not supported",
       [](Pt2File& f) {
         set_argument(f, {{"as_custom_obj", 1}});
       }},
      {"expected an object with one member",
       [](Pt2File& f) {
         set_argument(f, {{"as_int", 1}, {"as_bool", true}});
       }},
      {"expected an integer of 64 bits, but found 'true' of type boolean",
       [](Pt2File& f) {
         set_argument(f, {{"as_int", true}});
       }},
      {"the value 'linear_1' is read before it is made",
       [](Pt2File& f) { set_argument(f, as_tensor("linear_1")); }},
      {"the value 'relu' is read before it is made", [](Pt2File& f) { set_argument(f, as_tensor("relu")); }},
      {"the value 'nobody' is read before it is made",
       [](Pt2File& f) { set_argument(f, as_tensor("nobody")); }},
      {"the value 'x' is a tensor, not a number",
       [](Pt2File& f) {
         set_argument(f, {{"as_sym_int", {{"as_name", "x"}}}});
       }},
      {"node 1 'relu' (aten.relu.default): the name 'linear' is there twice",
       [](Pt2File& f) { f.nodes()[1]["outputs"][0] = as_tensor("linear"); }},
      {"the name 'x' is there twice",
       [](Pt2File& f) {
         f.input("x", {-1, 16});
       }},
      {"the argument 'self' is there twice",
       [](Pt2File& f) { f.nodes()[1]["inputs"].push_back(f.nodes()[1]["inputs"][0]); }},
      {"the file does not describe this tensor",
       [](Pt2File& f) { f.graph()["tensor_values"].erase("relu"); }},
      {"value 'relu': its size is negative or too large",
       [](Pt2File& f) {
         f.describe("relu", {1'000'000'000, 1'000'000'000, 1'000'000'000});
       }},
      {"results of the kind 'as_graph' are not supported",
       [](Pt2File& f) {
         f.nodes()[1]["outputs"][0] = {{"as_graph", 1}};
       }},
      {"a list has 10001 items",
       [](Pt2File& f) { set_argument(f, as_tensors(std::vector<std::string>(10'001, "linear"))); }},
      {"a list has 100001 items", [](Pt2File& f) { f.nodes() = std::vector<Json>(100'001, Json::object()); }},
      {"the graph has no nodes", [](Pt2File& f) { f.nodes() = Json::array(); }},
      {"the memory format 9 is unknown",
       [](Pt2File& f) {
         set_argument(f, {{"as_memory_format", 9}});
       }},
      {"the dtype with the code 99 is not supported",
       [](Pt2File& f) {
         set_argument(f, {{"as_scalar_type", 99}});
       }},
      {"a name has 2000 bytes", [](Pt2File& f) { f.nodes()[1]["target"] = std::string(2000, 'a'); }},
      {"the name 'a\\nb' has control characters", [](Pt2File& f) { f.nodes()[1]["target"] = "a\nb"; }},
      {"the parameter 'net.first' is overwritten in the forward pass",
       [](Pt2File& f) {
         f.node("aten.zero_.default", {{"self", as_tensor("p_first")}}, "zero_", {32, 16});
       }},
      {"no node reads a parameter that is trained",
       [](Pt2File& f) {
         for (const char* name : {"net.first", "net.second"}) meta_of(f, name)["requires_grad"] = false;
       }},
  });
}

TEST_CASE("inputs and outputs that are not one tensor each are refused") {
  const auto spec = [](Pt2File& file, const char* of) -> Json& { return file.signature()[of]; };
  check_all({
      {"input 0 of the network is not a tensor",
       [&](Pt2File& f) {
         spec(f, "input_specs")[2]["user_input"]["arg"] = {{"as_sym_int", {{"as_name", "x"}}}};
       }},
      {"an input that is not a tensor: 'k'", [&](Pt2File& f) { spec(f, "input_specs")[2] = constant_input; }},
      {"an input of the kind 'token' is not supported",
       [&](Pt2File& f) {
         spec(f, "input_specs")[0] = {{"token", {{"arg", {{"name", "p_first"}}}}}};
       }},
      {"different numbers of inputs", [&](Pt2File& f) { spec(f, "input_specs").erase(0); }},
      {"input 0 has another name", [&](Pt2File& f) { f.graph()["inputs"][0] = as_tensor("p_second"); }},
      {"the network has no input",
       [&](Pt2File& f) {
         spec(f, "input_specs").erase(2);
         f.graph()["inputs"].erase(2);
       }},
      {"the network has more than one output", [](Pt2File& f) { f.output("relu"); }},
      {"the network has no output",
       [&](Pt2File& f) {
         f.graph()["outputs"] = Json::array();
         spec(f, "output_specs") = Json::array();
       }},
      {"the new value of the buffer 'b' is an output",
       [&](Pt2File& f) {
         spec(f, "output_specs")[0] = {{"buffer_mutation", {{"buffer_name", "b"}}}};
       }},
      {"an output of the kind 'gradient_to_parameter' is not supported",
       [&](Pt2File& f) {
         spec(f, "output_specs")[0] = {{"gradient_to_parameter", 1}};
       }},
      {"the output of the network is not a tensor",
       [&](Pt2File& f) {
         spec(f, "output_specs")[0]["user_output"]["arg"] = {{"as_int", 1}};
       }},
      {"the value 'nobody' is read before it is made",
       [&](Pt2File& f) {
         spec(f, "output_specs")[0]["user_output"]["arg"] = as_tensor("nobody");
         f.graph()["outputs"][0] = as_tensor("nobody");
       }},
  });
}

TEST_CASE("an LSTM is read with its operations, also if it has a projection") {
  const auto lstm = [](std::int64_t outputs) {
    Pt2File file;
    file.parameter("ih", {16, 6});
    file.parameter("hh", {16, outputs});
    file.parameter("hr", {outputs, 4});
    file.input("x", {-1, 3, 6});
    file.input("h", {1, -1, outputs});
    file.input("c", {1, -1, 4});
    const auto flag = [](bool value) { return Json{{"as_bool", value}}; };
    file.node("aten.lstm.input",
              {{"input", as_tensor("x")},
               {"hx", as_tensors({"h", "c"})},
               {"params", outputs == 4 ? as_tensors({"p_ih", "p_hh"}) : as_tensors({"p_ih", "p_hh", "p_hr"})},
               {"has_biases", flag(false)},
               {"num_layers", {{"as_int", 1}}},
               {"dropout", {{"as_float", 0.0}}},
               {"train", flag(true)},
               {"bidirectional", flag(false)},
               {"batch_first", flag(true)}},
              "lstm", {-1, 3, outputs});
    file.output("lstm");
    return file;
  };
  const ScratchFolder folder;
  lstm(4).write(folder / "good.pt2");
  CHECK(read_exported(folder / "good.pt2").graph.nodes[0].forward_flops == 2.0 * 3 * (16 * 6 + 16 * 4));
  lstm(3).write(folder / "projecting.pt2");
  CHECK(read_exported(folder / "projecting.pt2").graph.nodes.size() == 1);
}

TEST_CASE("damaged archives are refused") {
  const ScratchFolder folder;
  const auto path = folder / "net.pt2";
  mlp().write(path);
  const std::string whole = read_text(path);
  const auto check = [&](const std::string& bytes, const std::string& part) {
    write_text(path, bytes);
    check_refused(path, part);
  };
  SUBCASE("cut anywhere") {
    for (std::size_t size = 0; size < whole.size(); size += 97) check(whole.substr(0, size), "zip archive");
    check(whole.substr(0, whole.size() - 1), "zip archive");
  }
  SUBCASE("one bit flipped in a weight") {
    std::string bytes = whole;
    const std::size_t weight = bytes.find(std::string("\0\0\x80\x3E\0\0\x80\x3E", 8));  // 0.25 twice
    REQUIRE(weight != std::string::npos);
    bytes[weight + 100] = static_cast<char>(bytes[weight + 100] ^ 1);
    check(bytes, "CRC");
  }
  SUBCASE("a pickle of the author's batch that is damaged, although it is not used") {
    Pt2File file = mlp();
    file.entries["data/sample_inputs/model.pt"] = "a pickle that is never read";
    file.write(path);
    CHECK(read_exported(path).graph.nodes.size() == 3);
    std::string bytes = read_text(path);
    bytes[bytes.find("never read")] = 'N';
    check(bytes, "CRC");
  }
}

TEST_CASE("archives with unsafe names, or that unpack to more than their size, are refused") {
  const ScratchFolder folder;
  const auto path = folder / "net.pt2";
  Pt2File file = mlp();
  SUBCASE("compressed zeros") {
    file.entries["data/weights/weight_9"] = std::string(std::size_t{1} << 24U, '\0');
    file.write(path, true);
    check_refused(path, "its entries unpack to more bytes than the file has");
  }
  SUBCASE("a name that leaves the folder") {
    file.entries["a/../../b"] = "";
    file.write(path);
    check_refused(path, "'net/a/../../b' is not safe");
  }
  SUBCASE("no folder") {
    file.folder = "";
    file.write(path);
    check_refused(path, "is not in a folder");
  }
  SUBCASE("a name twice") {
    file.entries["extra/a"] = "same bytes";
    file.entries["extra/b"] = "same bytes";
    file.write(path);
    std::string bytes = read_text(path);
    for (std::size_t at = bytes.find("extra/b"); at != std::string::npos; at = bytes.find("extra/b"))
      bytes.replace(at, 7, "extra/a");
    write_text(path, bytes);
    check_refused(path, "the entry 'extra/a' is there twice");
  }
}

TEST_CASE("a folder, a missing file and a file of another kind are refused") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& name) {
    return user_error_of([&] { read_exported(folder / name); });
  };
  std::filesystem::create_directory(folder / "folder.pt2");
  write_text(folder / "text.pt2", "PK not a zip");
  CHECK_MESSAGE(contains(error("folder.pt2"), "folder.pt2: cannot be opened: it is a folder"),
                error("folder.pt2"));
  CHECK_MESSAGE(contains(error("none.pt2"), "none.pt2: cannot be opened: No such file"), error("none.pt2"));
  CHECK_MESSAGE(contains(error("text.pt2"), "text.pt2: it is not a zip archive"), error("text.pt2"));
}
