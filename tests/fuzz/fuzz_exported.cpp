// Reads any bytes as a network that PyTorch exported.
#include "base/error.h"
#include "models/exported/exported.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace trainyard;
  const fuzz::MemoryFile file({bytes, size});
  try {
    const auto exported = models::read_exported(file.path());
    const models::Graph& graph = exported.graph;
    if (exported.inputs.size() != graph.inputs || graph.outputs.empty() || graph.tensors.empty())
      std::abort();
    for (const models::Node& node : graph.nodes)
      for (const models::ValueId value : node.reads)
        if (value >= graph.values) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
