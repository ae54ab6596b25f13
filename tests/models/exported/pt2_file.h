// Small `.pt2` files as torch.export.save writes them, made here so that tests can damage every part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace trainyard::tests {

using Json = nlohmann::json;

inline constexpr int float32_code = 7;
inline constexpr int int64_code = 5;

// Arguments and results of nodes.
Json as_tensor(const std::string& name);
Json as_tensors(const std::vector<std::string>& names);

struct Pt2File {
  Json model, weights, constants;
  Json evaluation;  // the model in evaluation; null: as in training
  std::map<std::string, std::string>
      entries;  // more entries, without the folder; they replace those made of the above
  std::string folder = "net";
  std::string without;  // an entry that is left out

  Pt2File();
  // All sizes: -1 is a symbolic batch with 4 samples in the example, -2 a symbolic length.
  void describe(const std::string& value, const std::vector<std::int64_t>& sizes, int dtype = float32_code);
  void input(const std::string& name, const std::vector<std::int64_t>& sizes, int dtype = float32_code);
  // A parameter "net.NAME" of the value "p_NAME", with the bytes of its own file weight_N. All items are `item`.
  void parameter(const std::string& name, const std::vector<std::int64_t>& sizes, float item = 0);
  // A buffer "net.NAME" of the value "b_NAME". If it is not persistent, it is among the constants.
  void buffer(const std::string& name, const std::vector<std::int64_t>& sizes, bool persistent = true);
  // A node with arguments (name, value) and one tensor as its result, named `result`. Returns the node.
  Json& node(const std::string& target, const std::vector<std::pair<std::string, Json>>& arguments,
             const std::string& result, const std::vector<std::int64_t>& sizes, int dtype = float32_code);
  // A constant "NAME" of the value "c_NAME".
  void constant(const std::string& name, const std::vector<std::int64_t>& sizes, float item);
  void output(const std::string& value);
  // Has the graph and the constants of `other` in evaluation.
  void evaluate_as(const Pt2File& other);

  Json& graph() { return model["graph_module"]["graph"]; }
  Json& signature() { return model["graph_module"]["signature"]; }
  Json& nodes() { return graph()["nodes"]; }

  // Writes all entries. `deflated`: compressed, which PyTorch never does.
  void write(const std::filesystem::path& path, bool deflated = false) const;
};

// A network of two linear layers with relu between them: x of 16, 32 hidden units, 10 results, a batch that is symbolic.
Pt2File mlp(const std::string& activation = "relu");

// A file in the format of safetensors.
std::string safetensors(const Json& header, const std::string& values);

// A file of first weights for `mlp`: all items of net.first are `first`, those of net.second `second`. `network`: SHA-256
// of the .pt2 file. `change` may damage the header.
std::string mlp_weights(float first, float second, const std::string& network,
                        const std::function<void(Json&)>& change = {});

}  // namespace trainyard::tests
