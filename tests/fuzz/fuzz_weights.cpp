// Reads any bytes as a safetensors file, and compares it with a network. The result is an answer or a UserError.
#include "base/error.h"
#include "models/exported/weights_file.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  models::Graph layers;
  layers.nodes = {{.path = "1", .kind = "linear", .sizes = {{"inputs", 3}, {"outputs", 2}}, .parameters = 6}};
  models::Graph stored = layers;
  stored.tensors = {
      {.name = "1.weight", .sizes = {2, 3}, .strides = {3, 1}, .offset = 0, .storage = nullptr}};
  try {
    const models::WeightsFile weights = models::read_weights_file(file.path());
    for (const auto& [name, sizes] : weights.sizes) {
      double items = 1;
      for (const std::int64_t length : sizes) items *= static_cast<double>(length);
      if (items < 0 || items > static_cast<double>(size)) std::abort();
    }
    models::weights_problem(layers, weights);
    models::weights_problem(stored, weights);
  } catch (const UserError&) {
  }
  return 0;
}
