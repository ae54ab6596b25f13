#include "models/exported/seed_weights.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/plain_file.h"
#include "base/sha256.h"
#include "models/exported/archive.h"
#include "models/exported/json.h"
#include "models/exported/tensors.h"
#include "models/exported/weights_file.h"

namespace trainyard::models {

namespace pt2 {
namespace {

constexpr std::array dtype_names{"F32", "F64", "BF16", "F16", "I64",
                                 "I32", "I16", "I8",   "U8",  "BOOL"};  // in the order of Dtype
constexpr const char* write_again = "export the network again, with --seeds";

// Whether the items fill their part of a storage. Otherwise a small file could need a large storage.
bool is_dense(const StoredTensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) last += (tensor.sizes[i] - 1) * tensor.strides[i];
  return last + 1 == number_of_items(tensor.sizes);
}

std::vector<std::int64_t> row_by_row(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

// Copies values that are row by row to the places that the strides of a dense tensor say.
class Placing {
 public:
  Placing(const StoredTensor& tensor, std::string_view from)
      : tensor_(tensor),
        bytes_(static_cast<std::size_t>(item_bytes(tensor.dtype))),
        from_(from),
        to_(std::make_shared<std::string>(from)) {
    if (!from.empty()) place(0, 0);
  }
  std::shared_ptr<const std::string> storage() const { return to_; }

 private:
  void place(std::size_t dimension, std::size_t at) {
    const bool whole_row = dimension + 1 == tensor_.sizes.size() && tensor_.strides[dimension] == 1;
    if (!whole_row && dimension < tensor_.sizes.size()) {
      for (std::int64_t i = 0; i < tensor_.sizes[dimension]; ++i)
        place(dimension + 1, at + static_cast<std::size_t>(i * tensor_.strides[dimension]));
      return;
    }
    const std::size_t count = bytes_ * (whole_row ? static_cast<std::size_t>(tensor_.sizes[dimension]) : 1);
    from_.copy(to_->data() + at * bytes_, count);
    from_.remove_prefix(count);
  }

  const StoredTensor& tensor_;
  std::size_t bytes_;
  std::string_view from_;
  std::shared_ptr<std::string> to_;
};

class SeedFile {
 public:
  explicit SeedFile(std::string_view content) : parts_(safetensors_in(content, write_again)) {}

  const std::string& network() const {
    return text_in(member(member(parts_.header, "__metadata__"), "network"));
  }

  void fill(StoredTensor& tensor) const {
    if (tensor.role == StoredTensor::Role::constant) return;
    const Json* entry = member_or_null(parts_.header, tensor.name);
    if (entry == nullptr && tensor.role == StoredTensor::Role::buffer) return;
    if (entry == nullptr) throw Fault("it has no values for " + in_quotes(tensor.name), write_again);
    within(in_quotes(tensor.name), [&] {
      const std::size_t dtype = static_cast<std::size_t>(tensor.dtype);
      if (text_in(member(*entry, "dtype")) != dtype_names.at(dtype) ||
          integers_in(member(*entry, "shape")) != tensor.sizes)
        throw Fault("its type or sizes are not those of the network", write_again);
      const auto bytes =
          static_cast<std::uint64_t>(*number_of_items(tensor.sizes) * item_bytes(tensor.dtype));
      const auto place = integers_in(member(*entry, "data_offsets"));
      if (place.size() != 2 || place[0] < 0 || place[1] < place[0] ||
          static_cast<std::uint64_t>(place[1]) > parts_.values.size() ||
          static_cast<std::uint64_t>(place[1] - place[0]) != bytes)
        throw Fault("its values are not where the header says", write_again);
      tensor.offset = 0;
      if (!is_dense(tensor)) tensor.strides = row_by_row(tensor.sizes);
      tensor.storage =
          Placing(tensor, parts_.values.substr(static_cast<std::size_t>(place[0]), bytes)).storage();
    });
  }

 private:
  Safetensors parts_;
};

}  // namespace
}  // namespace pt2

std::filesystem::path seed_file(const std::filesystem::path& exported, std::uint64_t seed) {
  return exported.parent_path() / fmt::format("{}.seed-{}.safetensors", exported.stem().string(), seed);
}

SeedWeights with_seed_weights(Graph graph, const std::filesystem::path& file, const std::string& network) {
  const PlainContent content = plain_content(file, pt2::most_file_bytes);
  return pt2::for_file(file, [&]() -> SeedWeights {
    if (!content.problem.empty()) throw pt2::Fault("cannot be read: " + content.problem, pt2::write_again);
    const pt2::SeedFile values(content.text);
    if (values.network() != network)
      throw pt2::Fault("it belongs to another version of the .pt2 file beside it", pt2::write_again);
    for (StoredTensor& tensor : graph.tensors) values.fill(tensor);
    if (graph.evaluation) {
      const auto evaluation = std::make_shared<Graph>(*graph.evaluation);
      for (StoredTensor& tensor : evaluation->tensors) values.fill(tensor);
      graph.evaluation = evaluation;
    }
    return {std::move(graph), sha256_hex(content.text)};
  });
}

}  // namespace trainyard::models
