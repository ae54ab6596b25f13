#include "models/exported/weights_file.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "models/exported/archive.h"
#include "models/exported/tensors.h"

namespace trainyard::models {

namespace pt2 {

Safetensors safetensors_in(std::string_view content, const char* advice) {
  constexpr std::size_t most_header_bytes = std::size_t{1} << 24U;
  std::uint64_t length = 0;
  if (content.size() < sizeof length) throw Fault("it ends in its first 8 bytes", advice);
  std::memcpy(&length, content.data(), sizeof length);
  content.remove_prefix(sizeof length);
  if (length > content.size()) throw Fault("it ends in its header", advice);
  Safetensors found{.header = parsed(content.substr(0, length), most_header_bytes),
                    .values = content.substr(length)};
  object_in(found.header);
  return found;
}

std::vector<std::int64_t> integers_in(const Json& json) {
  std::vector<std::int64_t> integers;
  for (const Json& each : list_in(json, most_dimensions)) integers.push_back(integer_in(each));
  return integers;
}

}  // namespace pt2

namespace {

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string stored_problem(const StoredTensor& tensor, const WeightsFile& file) {
  if (tensor.role != StoredTensor::Role::parameter) return "";
  const auto found = file.sizes.find(tensor.name);
  if (found == file.sizes.end()) return fmt::format("it has no values for {}", tensor.name);
  return found->second == tensor.sizes ? ""
                                       : fmt::format("{} is {}, but the network has {}", tensor.name,
                                                     shape_text(found->second), shape_text(tensor.sizes));
}

// "12" of "12.weight".
std::string_view layer_of(std::string_view name) {
  return name.substr(0, name.find('.'));
}

bool is_running_statistic(std::string_view name) {
  return name.ends_with(".running_mean") || name.ends_with(".running_var");
}

std::string layers_problem(const Graph& graph, const WeightsFile& file) {
  std::map<std::string_view, std::int64_t> values;
  for (const auto& [name, sizes] : file.sizes)
    if (!is_running_statistic(name)) values[layer_of(name)] += pt2::number_of_items(sizes).value_or(0);
  for (const Node& node : graph.nodes) {
    const std::int64_t there = values[node.path];
    values.erase(node.path);
    if (there != node.parameters)
      return fmt::format("it has {} for layer {} ({}), but the network has {}", counted(there, "value"),
                         node.path, node.kind, node.parameters);
    const auto weight = file.sizes.find(node.path + ".weight");
    if ((node.kind == "linear" || node.kind == "conv2d") && weight != file.sizes.end() &&
        !weight->second.empty() && weight->second.front() != node.sizes.at("outputs"))
      return fmt::format("{} is {}, but its first size must be {}", weight->first, shape_text(weight->second),
                         node.sizes.at("outputs"));
  }
  return values.empty() ? "" : fmt::format("the network has no layer {}", values.begin()->first);
}

}  // namespace

WeightsFile read_weights_file(const std::filesystem::path& file) {
  constexpr const char* advice = "name a safetensors file, as `save` writes it";
  const std::string name = printable_line(file.string());
  const PlainContent content = plain_content(file, pt2::most_file_bytes);
  if (!content.problem.empty()) throw UserError(name + ": cannot be read: " + content.problem, advice);
  WeightsFile found{.sizes = {}, .sha256 = sha256_hex(content.text)};
  try {
    const pt2::Safetensors parts = pt2::safetensors_in(content.text, advice);
    for (const auto& [tensor, entry] : pt2::object_in(parts.header)) {
      if (tensor == "__metadata__") continue;
      pt2::within(pt2::in_quotes(tensor), [&, &tensor = tensor, &entry = entry] {
        const auto place = pt2::integers_in(pt2::member(entry, "data_offsets"));
        if (place.size() != 2 || place[0] < 0 || place[1] < place[0] ||
            static_cast<std::uint64_t>(place[1]) > parts.values.size())
          throw pt2::Fault("its values are not where the header says", advice);
        const auto sizes = pt2::integers_in(pt2::member(entry, "shape"));
        const auto items = pt2::number_of_items(sizes);
        if (!items || *items > place[1] - place[0])  // an item has a byte or more
          throw pt2::Fault("it has fewer values than its shape says", advice);
        found.sizes[tensor] = sizes;
      });
    }
  } catch (const pt2::Fault& fault) {
    throw UserError(name + " is not a complete safetensors file: " + fault.what(), advice);
  }
  return found;
}

std::string weights_problem(const Graph& graph, const WeightsFile& file) {
  if (!graph.exported()) return layers_problem(graph, file);
  for (const StoredTensor& tensor : graph.tensors)
    if (std::string problem = stored_problem(tensor, file); !problem.empty()) return problem;
  return "";
}

}  // namespace trainyard::models
