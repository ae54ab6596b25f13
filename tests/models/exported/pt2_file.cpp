#include "tests/models/exported/pt2_file.h"

#include <cstring>
#include <memory>

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>

namespace trainyard::tests {

namespace {

constexpr std::int64_t batch = -1;
constexpr std::int64_t length = -2;
const std::string training_constants = "data/constants/";
const std::string evaluation_constants = "trainyard/evaluation/constants/";

Json sizes_of(const std::vector<std::int64_t>& sizes) {
  Json list = Json::array();
  for (const std::int64_t size : sizes) {
    if (size == batch || size == length) {
      const std::string symbol = size == batch ? "s21" : "s7";
      list.push_back({{"as_expr",
                       {{"expr_str", "Symbol('" + symbol + "', positive=True, integer=True)"},
                        {"hint", {{"as_int", 4}}}}}});
    } else {
      list.push_back({{"as_int", size}});
    }
  }
  return list;
}

Json meta(const std::vector<std::int64_t>& sizes, int dtype, bool requires_grad) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * std::abs(sizes[i]);
  return {{"dtype", dtype},
          {"sizes", sizes_of(sizes)},
          {"requires_grad", requires_grad},
          {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", sizes_of(strides)},
          {"storage_offset", {{"as_int", 0}}},
          {"layout", 7}};
}

std::string bytes_of(const std::vector<std::int64_t>& sizes, float item) {
  std::size_t items = 1;
  for (const std::int64_t size : sizes) items *= static_cast<std::size_t>(size);
  const std::vector<float> values(items, item);
  std::string bytes(items * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Json stored(const std::string& file, const std::vector<std::int64_t>& sizes, bool parameter) {
  return {{"path_name", file},
          {"is_param", parameter},
          {"use_pickle", false},
          {"tensor_meta", meta(sizes, float32_code, parameter)}};
}

}  // namespace

Json as_tensor(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}

Json as_tensors(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back({{"name", name}});
  return {{"as_tensors", list}};
}

Pt2File::Pt2File() {
  const Json list = Json::array();
  model = {{"schema_version", {{"major", 8}, {"minor", 20}}}, {"torch_version", "2.13.0+cpu"}};
  graph() = {{"inputs", list}, {"outputs", list}, {"nodes", list}, {"tensor_values", Json::object()}};
  signature() = {{"input_specs", list}, {"output_specs", list}};
  weights = constants = {{"config", Json::object()}};
}

void Pt2File::describe(const std::string& value, const std::vector<std::int64_t>& sizes, int dtype) {
  graph()["tensor_values"][value] = meta(sizes, dtype, false);
}

void Pt2File::input(const std::string& name, const std::vector<std::int64_t>& sizes, int dtype) {
  describe(name, sizes, dtype);
  graph()["inputs"].push_back(as_tensor(name));
  signature()["input_specs"].push_back({{"user_input", {{"arg", as_tensor(name)}}}});
}

void Pt2File::parameter(const std::string& name, const std::vector<std::int64_t>& sizes, float item) {
  const std::string file = "weight_" + std::to_string(weights["config"].size());
  describe("p_" + name, sizes);
  graph()["inputs"].push_back(as_tensor("p_" + name));
  signature()["input_specs"].push_back(
      {{"parameter", {{"arg", {{"name", "p_" + name}}}, {"parameter_name", "net." + name}}}});
  weights["config"]["net." + name] = stored(file, sizes, true);
  entries["data/weights/" + file] = bytes_of(sizes, item);
}

void Pt2File::buffer(const std::string& name, const std::vector<std::int64_t>& sizes, bool persistent) {
  Json& config = (persistent ? weights : constants)["config"];
  const std::string file = (persistent ? "weight_" : "tensor_") + std::to_string(config.size());
  describe("b_" + name, sizes);
  graph()["inputs"].push_back(as_tensor("b_" + name));
  signature()["input_specs"].push_back(
      {{"buffer",
        {{"arg", {{"name", "b_" + name}}}, {"buffer_name", "net." + name}, {"persistent", persistent}}}});
  config["net." + name] = stored(file, sizes, false);
  entries[(persistent ? "data/weights/" : "data/constants/") + file] = bytes_of(sizes, 0);
}

Json& Pt2File::node(const std::string& target, const std::vector<std::pair<std::string, Json>>& arguments,
                    const std::string& result, const std::vector<std::int64_t>& sizes, int dtype) {
  Json inputs = Json::array();
  for (const auto& [name, value] : arguments) inputs.push_back({{"name", name}, {"arg", value}, {"kind", 1}});
  describe(result, sizes, dtype);
  nodes().push_back(
      {{"target", "torch.ops." + target},
       {"inputs", inputs},
       {"outputs", Json::array({as_tensor(result)})},
       {"metadata", {{"nn_module_stack", "L__self__,,Net;L__self__net." + result + ",net." + result + ",T"}}},
       {"name", result}});
  return nodes().back();
}

void Pt2File::constant(const std::string& name, const std::vector<std::int64_t>& sizes, float item) {
  const std::string file = "tensor_" + std::to_string(constants["config"].size());
  describe("c_" + name, sizes);
  graph()["inputs"].push_back(as_tensor("c_" + name));
  signature()["input_specs"].push_back(
      {{"tensor_constant", {{"arg", {{"name", "c_" + name}}}, {"tensor_constant_name", name}}}});
  constants["config"][name] = stored(file, sizes, false);
  entries["data/constants/" + file] = bytes_of(sizes, item);
}

void Pt2File::evaluate_as(const Pt2File& other) {
  evaluation = other.model;
  entries[evaluation_constants + "model_constants_config.json"] = other.constants.dump();
  for (const auto& [name, content] : other.entries)
    if (name.starts_with(training_constants))
      entries[evaluation_constants + name.substr(training_constants.size())] = content;
}

void Pt2File::output(const std::string& value) {
  graph()["outputs"].push_back(as_tensor(value));
  signature()["output_specs"].push_back({{"user_output", {{"arg", as_tensor(value)}}}});
}

void Pt2File::write(const std::filesystem::path& path, bool deflated) const {
  std::map<std::string, std::string> all{
      {"archive_format", "pt2"},
      {"archive_version", "0"},
      {"byteorder", "little"},
      {"models/model.json", model.dump()},
      {"data/weights/model_weights_config.json", weights.dump()},
      {"data/constants/model_constants_config.json", constants.dump()},
      {"trainyard/evaluation/model.json", (evaluation.is_null() ? model : evaluation).dump()}};
  for (const auto& [name, content] : entries) all[name] = content;
  all.erase(without);
  if (evaluation.is_null())
    for (const auto& [name, content] : std::map(all))
      if (name.starts_with(training_constants))
        all.emplace(evaluation_constants + name.substr(training_constants.size()), content);
  const std::unique_ptr<archive, int (*)(archive*)> zip(archive_write_new(), archive_write_free);
  REQUIRE(archive_write_set_format_zip(zip.get()) == ARCHIVE_OK);
  REQUIRE(archive_write_set_options(
              zip.get(), deflated ? "zip:compression=deflate" : "zip:compression=store") == ARCHIVE_OK);
  REQUIRE(archive_write_open_filename(zip.get(), path.c_str()) == ARCHIVE_OK);
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                       archive_entry_free);
  for (const auto& [name, content] : all) {
    archive_entry_clear(entry.get());
    archive_entry_set_pathname(entry.get(), (folder.empty() ? name : folder + "/" + name).c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    REQUIRE(archive_write_header(zip.get(), entry.get()) == ARCHIVE_OK);
    REQUIRE(archive_write_data(zip.get(), content.data(), content.size()) ==
            static_cast<la_ssize_t>(content.size()));
  }
  REQUIRE(archive_write_close(zip.get()) == ARCHIVE_OK);
}

Pt2File mlp(const std::string& activation) {
  Pt2File file;
  file.parameter("first", {32, 16}, 0.25F);
  file.parameter("second", {10, 32}, 0.5F);
  file.input("x", {batch, 16});
  file.node("aten.linear.default", {{"input", as_tensor("x")}, {"weight", as_tensor("p_first")}}, "linear",
            {batch, 32});
  file.node("aten." + activation + ".default", {{"self", as_tensor("linear")}}, "relu", {batch, 32});
  file.node("aten.linear.default", {{"input", as_tensor("relu")}, {"weight", as_tensor("p_second")}},
            "linear_1", {batch, 10});
  file.output("linear_1");
  return file;
}

std::string safetensors(const Json& header, const std::string& values) {
  const std::string text = header.dump();
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  return length + text + values;
}

std::string mlp_weights(float first, float second, const std::string& network,
                        const std::function<void(Json&)>& change) {
  const std::string values = bytes_of({32, 16}, first) + bytes_of({10, 32}, second);
  Json header{{"__metadata__", {{"network", network}}},
              {"net.first", {{"dtype", "F32"}, {"shape", {32, 16}}, {"data_offsets", {0, 2048}}}},
              {"net.second", {{"dtype", "F32"}, {"shape", {10, 32}}, {"data_offsets", {2048, 3328}}}}};
  if (change) change(header);
  return safetensors(header, values);
}

}  // namespace trainyard::tests
