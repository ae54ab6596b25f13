// First weights in a safetensors file, for a network of trainyard or of PyTorch. Only names and sizes are read: the runner
// reads the values. The file may be hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/exported/json.h"
#include "models/graph.h"

namespace trainyard::models {

namespace pt2 {

// The parts of a safetensors file: https://github.com/huggingface/safetensors.
struct Safetensors {
  Json header;  // an object: name → dtype, shape, data_offsets
  std::string_view values;
};
// Fault with `advice` if the file ends before its values.
Safetensors safetensors_in(std::string_view content, const char* advice);

// A shape or place of the header. Fault if it is not a list of at most 32 integers.
std::vector<std::int64_t> integers_in(const Json& json);

}  // namespace pt2

struct WeightsFile {
  std::map<std::string, std::vector<std::int64_t>> sizes;  // by the name of the tensor
  std::string sha256;                                      // of the file
};
// UserError if the file cannot be read, or is not a safetensors file.
WeightsFile read_weights_file(const std::filesystem::path& file);

// Why the weights do not fit a network; empty if they do.
// - An exported network needs each of its parameters, with its sizes.
// - A network of trainyard needs as many values for each layer as the layer has, and none for other layers.
std::string weights_problem(const Graph& graph, const WeightsFile& file);

}  // namespace trainyard::models
