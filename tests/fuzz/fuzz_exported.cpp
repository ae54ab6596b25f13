// Reads any bytes as a network that PyTorch exported.
// - Bytes that begin with "PK" are the file itself.
// - Others are models/model.json, and after "\n--\n" the list of weights. They get an archive here, because its
//   checksums would refuse every change.
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/exported/exported.h"
#include "tests/fuzz/memory_file.h"

namespace {

using namespace trainyard;

// Little-endian numbers, each with its number of bytes.
std::string numbers(const std::vector<std::pair<std::uint64_t, int>>& all) {
  std::string text;
  for (const auto& [number, bytes] : all)
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? number >> (8 * i) & 0xFFU : 0);
  return text;
}

std::uint32_t crc32_of(const std::string& text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char letter : text) {
    crc ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// A zip archive of stored entries.
std::string zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string files;
  std::string directory;
  for (const auto& [name, content] : entries) {
    std::string about = numbers({{10, 2}, {0, 2}, {0, 2}, {0, 4}, {crc32_of(content), 4}});
    about += numbers({{content.size(), 4}, {content.size(), 4}, {name.size(), 2}, {0, 2}});
    directory += "PK\x01\x02";
    directory +=
        numbers({{0x031E, 2}}).append(about).append(numbers({{0, 6}, {0x81A40000, 4}, {files.size(), 4}}));
    directory += name;
    files += "PK\x03\x04";
    files.append(about).append(name).append(content);
  }
  const std::string end = numbers(
      {{0, 4}, {entries.size(), 2}, {entries.size(), 2}, {directory.size(), 4}, {files.size(), 4}, {0, 2}});
  return files.append(directory).append("PK\x05\x06").append(end);
}

std::string archive_of(std::span<const std::uint8_t> bytes) {
  const auto [model, weights] = fuzz::halves(bytes);
  const std::string storage(256, '\1');
  return zip({{"n/archive_format", "pt2"},
              {"n/byteorder", "little"},
              {"n/models/model.json", {model.begin(), model.end()}},
              {"n/trainyard/evaluation/model.json", {model.begin(), model.end()}},
              {"n/trainyard/evaluation/constants/model_constants_config.json", "{\"config\":{}}"},
              {"n/data/weights/model_weights_config.json", {weights.begin(), weights.end()}},
              {"n/data/weights/weight_0", storage},
              {"n/data/weights/weight_1", storage},
              {"n/data/constants/model_constants_config.json", "{\"config\":{}}"}});
}

// What a caller relies on.
void check(const models::Exported& exported) {
  const models::Graph& graph = exported.graph;
  if (!graph.evaluation || graph.nodes.back().in_evaluation > graph.evaluation->nodes.size()) std::abort();
  if (exported.inputs.size() != graph.inputs || graph.outputs.size() != 1 || graph.tensors.empty())
    std::abort();
  const auto known = [&](models::ValueId value) {
    if (value >= graph.values) std::abort();
  };
  for (const models::ValueId value : graph.outputs) known(value);
  for (const models::Node& node : graph.nodes) {
    for (const models::ValueId value : node.reads) known(value);
    for (const models::ValueId value : node.makes) known(value);
    if (!(node.forward_flops >= 0) || !(node.forward_bytes >= 0) || node.parameters < 0) std::abort();
  }
  for (const models::StoredTensor& tensor : graph.tensors) {
    known(tensor.value);
    std::size_t last = static_cast<std::size_t>(tensor.offset);
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
      if (tensor.sizes[i] == 0) return;
      last += static_cast<std::size_t>((tensor.sizes[i] - 1) * tensor.strides.at(i));
    }
    if (last >= tensor.storage->size()) std::abort();  // an item has at least one byte
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string made;
  std::span<const std::uint8_t> content(bytes, size);
  if (size < 2 || bytes[0] != 'P' || bytes[1] != 'K') {
    made = archive_of(content);
    content = {reinterpret_cast<const std::uint8_t*>(made.data()), made.size()};
  }
  const fuzz::MemoryFile file(content);
  try {
    check(models::read_exported(file.path()));
  } catch (const UserError&) {
  }
  return 0;
}
