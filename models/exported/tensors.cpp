#include "models/exported/tensors.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace trainyard::models::pt2 {

namespace {

constexpr std::int64_t most_size = std::int64_t{1} << 48U;
constexpr std::size_t most_config_bytes = std::size_t{1} << 24U;

struct Type {
  std::int64_t code;  // of torch.export
  std::int64_t bytes;
  bool floating;
};
// In the order of Dtype: four of floating-point numbers, five of integers, and truths.
constexpr std::array<Type, 10> types{{{7, 4, true},
                                      {8, 8, true},
                                      {13, 2, true},
                                      {6, 2, true},
                                      {5, 8, false},
                                      {4, 4, false},
                                      {3, 2, false},
                                      {2, 1, false},
                                      {1, 1, false},
                                      {12, 1, false}}};

// One past the last item of the storage that the tensor reaches. Empty if it is above 2^48.
std::optional<std::int64_t> end_of(const StoredTensor& tensor) {
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return tensor.offset;
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last >= most_size)
      return std::nullopt;
  }
  return last + 1;
}

// Whether no two items of the tensor are the same bytes.
bool has_own_items(const StoredTensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride and size
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return true;
    if (tensor.sizes[i] > 1) steps.emplace_back(tensor.strides[i], tensor.sizes[i]);
  }
  std::ranges::sort(steps);
  std::int64_t reach = 0;  // from the first to the last item of the smaller steps
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

std::vector<std::int64_t> sizes_in(const Json& json) {
  std::vector<std::int64_t> sizes;
  for (const Json& size : list_in(json, most_dimensions)) sizes.push_back(integer_in(member(size, "as_int")));
  return sizes;
}

void check_place(const StoredTensor& tensor) {
  const auto negative = [](std::int64_t number) { return number < 0 || number > most_size; };
  if (tensor.sizes.size() != tensor.strides.size())
    throw Fault("its sizes and strides have different lengths");
  if (std::ranges::any_of(tensor.sizes, negative) || std::ranges::any_of(tensor.strides, negative) ||
      negative(tensor.offset))
    throw Fault("a size, stride or offset is negative or too large");
  const auto items = number_of_items(tensor.sizes);
  const std::int64_t bytes = item_bytes(tensor.dtype);
  if (!items || *items > static_cast<std::int64_t>(most_file_bytes) / bytes)
    throw Fault(fmt::format("it has more than {} bytes, which is the limit", most_file_bytes));
  const auto end = end_of(tensor);
  const auto stored = static_cast<std::int64_t>(tensor.storage->size());
  if (!end || *end > stored / bytes)
    throw Fault(fmt::format("it goes beyond its storage of {} bytes", stored));
}

StoredTensor read_tensor(const Entries& entries, const std::string& folder, const std::string& name,
                         const Json& json) {
  if (flag_in(member(json, "use_pickle")))
    throw Fault("it is pickled, and a pickle can run any program",
                "use plain tensors as parameters and buffers, no subclasses of torch.Tensor");
  const Json& meta = member(json, "tensor_meta");
  if (integer_in(member(meta, "layout")) != strided_layout)
    throw Fault("it is not a dense tensor", "use dense parameters and buffers");
  StoredTensor tensor{.name = name,
                      .role = StoredTensor::Role::parameter,
                      .value = 0,
                      .dtype = supported_dtype(integer_in(member(meta, "dtype"))),
                      .sizes = sizes_in(member(meta, "sizes")),
                      .strides = sizes_in(member(meta, "strides")),
                      .offset = integer_in(member(member(meta, "storage_offset"), "as_int")),
                      .requires_grad = flag_in(member(meta, "requires_grad")),
                      .storage = nullptr};
  const std::string& file = name_in(member(json, "path_name"));
  if (file.find('/') != std::string::npos || file == "." || file == "..")
    throw Fault("the name of its file, " + in_quotes(file) + ", is not safe");
  const auto found = entries.find(folder + file);
  if (found == entries.end()) throw Fault("its file " + in_quotes(folder + file) + " is missing");
  tensor.storage = found->second;
  check_place(tensor);
  return tensor;
}

}  // namespace

std::optional<Dtype> dtype_of(std::int64_t code) {
  const auto* found = std::ranges::find(types, code, &Type::code);
  return found == types.end() ? std::nullopt : std::optional(static_cast<Dtype>(found - types.begin()));
}

Dtype supported_dtype(std::int64_t code) {
  if (const auto dtype = dtype_of(code)) return *dtype;
  throw Fault(fmt::format("the dtype with the code {} is not supported", code),
              "use float32, float64, bfloat16, float16, bool, or integers of 8 to 64 bits");
}

bool is_floating(Dtype dtype) {
  return types.at(static_cast<std::size_t>(dtype)).floating;
}

std::int64_t item_bytes(Dtype dtype) {
  return types.at(static_cast<std::size_t>(dtype)).bytes;
}

std::optional<std::int64_t> number_of_items(const std::vector<std::int64_t>& sizes) {
  std::int64_t items = 1;
  bool empty = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    if (size > 0 && (__builtin_mul_overflow(items, size, &items) || items > most_size)) return std::nullopt;
  }
  return empty ? 0 : items;
}

std::map<std::string, StoredTensor> read_tensors(const Entries& entries, const std::string& folder,
                                                 const std::string& config) {
  const std::string file = folder + config;
  return within(file, [&] {
    const auto found = entries.find(file);
    if (found == entries.end()) throw Fault("the archive has no such entry");
    const Json json = parsed(*found->second, most_config_bytes);
    std::map<std::string, StoredTensor> tensors;
    std::int64_t bytes = 0;
    for (const auto& [name, about] : object_in(member(json, "config"))) {
      within("tensor " + in_quotes(name), [&, &name = name, &about = about] {
        const StoredTensor tensor = read_tensor(entries, folder, name_in(name), about);
        bytes += *number_of_items(tensor.sizes) * item_bytes(tensor.dtype);
        if (bytes > static_cast<std::int64_t>(most_file_bytes))
          throw Fault(fmt::format("all tensors together have more than {} bytes, which is the limit",
                                  most_file_bytes));
        tensors.emplace(name, tensor);
      });
    }
    return tensors;
  });
}

void check_own_memory(const std::vector<StoredTensor>& tensors,
                      const std::vector<const StoredTensor*>& changed) {
  const std::set<const StoredTensor*> alone(changed.begin(), changed.end());
  for (const StoredTensor* tensor : changed)
    if (!has_own_items(*tensor))
      throw Fault("items of " + in_quotes(tensor->name) + " share memory", "make the tensor contiguous");
  std::vector<std::tuple<const std::string*, std::int64_t, const StoredTensor*>>
      starts;  // storage, first byte
  starts.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors)
    starts.emplace_back(tensor.storage.get(), tensor.offset * item_bytes(tensor.dtype), &tensor);
  std::ranges::sort(starts);
  struct Reach {
    std::int64_t end = 0;  // one past the last byte
    const StoredTensor* tensor = nullptr;
  };
  Reach all;     // of the tensors before this one in the storage
  Reach lonely;  // of those that must not share memory
  const std::string* storage = nullptr;
  for (const auto& [bytes, start, tensor] : starts) {
    if (bytes != storage) all = lonely = {};
    storage = bytes;
    const Reach& other = alone.contains(tensor) ? all : lonely;
    if (start < other.end)
      throw Fault(
          in_quotes(other.tensor->name) + " and " + in_quotes(tensor->name) + " share a part of their memory",
          "give each parameter and each changed buffer its own memory, or tie them");
    const std::int64_t end = end_of(*tensor).value_or(0) * item_bytes(tensor->dtype);
    if (end > all.end) all = {.end = end, .tensor = tensor};
    if (alone.contains(tensor) && end > lonely.end) lonely = {.end = end, .tensor = tensor};
  }
}

}  // namespace trainyard::models::pt2
