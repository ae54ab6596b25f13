#include "runner/parity/reference_batch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>

#include "base/error.h"
#include "base/text.h"
#include "models/exported/exported.h"
#include "models/in_double.h"
#include "models/networks/network.h"
#include "models/networks/safetensors.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

using networks::NamedParameter;
// "output", "loss", "gradient/NAME", "buffer/NAME", "evaluation"
using Tensors = std::map<std::string, at::Tensor>;

constexpr const char* export_again = "export the network again with `trainyard export`";

// Operators that draw random numbers, and those that give 0.5 in their place.
constexpr std::array<std::pair<std::string_view, const char*>, 4> halves{
    {{"aten.rand.default", "aten.full.default"},
     {"aten.randn.default", "aten.full.default"},
     {"aten.rand_like.default", "aten.full_like.default"},
     {"aten.randn_like.default", "aten.full_like.default"}}};

// Sets all probabilities of dropout to 0, also inside attention and LSTMs, and in evaluation, and numbers that `halves` has to
// 0.5. What still draws has `draws` or `by_sample`.
models::Graph without_random_numbers(models::Graph graph) {
  for (models::Node& node : graph.nodes) {
    const bool is_dropout = node.kind.find("dropout") != std::string::npos;
    for (models::Argument& argument : node.arguments)
      if (argument.name == "dropout_p" || argument.name == "dropout" ||
          (is_dropout && argument.name == "p")) {
        argument.value = 0.0;
        node.draws = false;
        node.by_sample.reset();
      }
    const auto half = std::ranges::find(halves, node.kind, &std::pair<std::string_view, const char*>::first);
    if (half == halves.end()) continue;
    node.kind = half->second;
    node.arguments.push_back({.name = "fill_value", .value = 0.5});
    node.draws = false;
    node.by_sample.reset();
  }
  if (graph.evaluation)
    graph.evaluation = std::make_shared<const models::Graph>(without_random_numbers(*graph.evaluation));
  return graph;
}

// New tensors without a type have this one while it lives.
class DefaultType {
 public:
  explicit DefaultType(at::ScalarType type) : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
  }
  ~DefaultType() { c10::set_default_dtype(before_); }
  DefaultType(const DefaultType&) = delete;
  DefaultType& operator=(const DefaultType&) = delete;

 private:
  caffe2::TypeMeta before_;
};

// "gradient" of "gradient/fc.weight".
std::string kind_of(const std::string& name) {
  return name.substr(0, name.find('/'));
}

// The tensors whose names begin with `prefix`, without it.
Tensors part(const std::vector<NamedParameter>& all, const std::string& prefix) {
  Tensors found;
  for (const NamedParameter& each : all)
    if (each.name.starts_with(prefix)) found[each.name.substr(prefix.size())] = each.value;
  return found;
}

networks::Activations inputs_of(const Tensors& batch, std::size_t count, const std::string& where) {
  networks::Activations inputs;
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = batch.find("input/" + std::to_string(i));
    if (found == batch.end() || found->second.dim() == 0)
      throw UserError(where + " has no input " + std::to_string(i), export_again);
    inputs.push_back(found->second);
  }
  return inputs;
}

bool draws(const models::Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const models::Node& node) { return node.draws || node.by_sample; }) ||
         (graph.evaluation && draws(*graph.evaluation));
}

// A network may overwrite its inputs.
networks::Activations copies(networks::Activations all) {
  for (at::Tensor& tensor : all) tensor = tensor.clone();
  return all;
}

// The first output, and behind each sample its values of the network's own loss, if it has one.
at::Tensor joined(const networks::Activations& outputs) {
  if (outputs.size() == 1) return outputs.front();
  networks::Activations columns{outputs.front().flatten(1)};
  for (std::size_t i = 1; i < outputs.size(); ++i) columns.push_back(outputs[i].unsqueeze(1));
  return at::cat(columns, 1);
}

// The cosines of 0, 1, 2, …, in the form of `like`. Not at::cos: with several threads its first call in a process is
// sometimes only as accurate as float32 (MKL, torch 2.13).
at::Tensor cosines(const at::Tensor& like) {
  at::Tensor found = at::empty(like.numel(), at::kDouble);
  double* values = found.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < found.numel(); ++i) values[i] = std::cos(static_cast<double>(i));
  return found.to(like.scalar_type()).view(like.sizes());
}

// The step that tools/trainyard/export_model/reference.py describes.
Tensors step(const models::Graph& graph, const networks::Activations& inputs, at::ScalarType dtype) {
  const networks::Network built = networks::build_network(graph, {.seed = 0, .dtype = dtype});
  networks::ForwardContext context;
  context.samples = at::arange(inputs.front().size(0), at::kLong);
  const at::Tensor output = joined(built.forward(copies(inputs), context));
  const at::Tensor loss = (output * cosines(output)).sum();
  loss.backward();
  Tensors found{{"output", output.detach()}, {"loss", loss.detach()}};
  for (const NamedParameter& each : built.parameters())
    if (each.value.grad().defined()) found["gradient/" + each.name] = whole(each.value.grad());
  for (const NamedParameter& each : built.buffers()) found["buffer/" + each.name] = each.value;
  const at::NoGradGuard no_grad;
  context.training = false;
  found["evaluation"] = joined(built.forward(copies(inputs), context));
  return found;
}

// The largest finite value of each kind.
std::map<std::string, double> largest_values(const Tensors& tensors) {
  std::map<std::string, double> largest;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) continue;
    const at::Tensor finite = at::nan_to_num(tensor.to(at::kDouble), 0.0, 0.0, 0.0);
    double& value = largest[kind_of(name)];
    value = std::max(value, finite.abs().max().item<double>());
  }
  return largest;
}

// How far `found` is from `expected`. Equal infinities are not apart.
double distance(const at::Tensor& expected, const at::Tensor& found) {
  if (expected.numel() == 0) return 0;
  const at::Tensor apart = (expected.to(at::kDouble) - found.to(at::kDouble)).abs();
  return at::where(expected == found, 0.0, apart).max().item<double>();
}

// What differs, or nothing.
std::optional<std::string> difference(const std::string& name, const at::Tensor& expected,
                                      const Tensors& computed, double limit) {
  const auto found = computed.find(name);
  if (found == computed.end()) {  // a parameter that the output does not depend on has no gradient
    // a buffer that no node reads stays as it is
    if (kind_of(name) == "buffer" || expected.count_nonzero().item<std::int64_t>() == 0) return std::nullopt;
    return "is missing";
  }
  const at::Tensor& tensor = found->second;
  if (tensor.sizes() != expected.sizes())
    return "has " + std::to_string(tensor.numel()) + " values, but PyTorch's has " +
           std::to_string(expected.numel());
  if (!expected.is_floating_point()) {
    if (at::equal(expected, tensor.to(expected.scalar_type()))) return std::nullopt;
    return "has other numbers";
  }
  const double off = distance(expected, tensor);
  if (off <= limit) return std::nullopt;  // also refuses nan
  std::ostringstream text;
  text << std::setprecision(2) << "is " << off << " off, and the limit is " << limit;
  return text.str();
}

// "gradient of fc.weight".
std::string spoken(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos) return name;
  return name.substr(0, slash) + " of " + shortened(printable_line(name.substr(slash + 1)), 200);
}

// Compares one step and returns the number of tensors. `reference`: of PyTorch, with the inputs.
std::size_t compare(const models::Exported& network, const models::Graph& graph, const Tensors& reference,
                    const std::string& where) {
  const auto output = reference.find("output");
  if (output == reference.end() || !output->second.is_floating_point())
    throw UserError(where + " has no output", export_again);
  const at::ScalarType dtype = output->second.scalar_type();
  const DefaultType usual(dtype);
  const Tensors computed = step(dtype == at::kDouble ? models::in_double(graph) : graph,
                                inputs_of(reference, network.inputs.size(), where), dtype);
  std::map<std::string, double> largest = largest_values(reference);
  largest["loss"] = largest["output"] * std::sqrt(static_cast<double>(output->second.numel()));
  const double tolerance = dtype == at::kDouble ? 1e-9 : 1e-3;
  std::size_t compared = 0;
  for (const auto& [name, expected] : reference) {
    if (kind_of(name) == "input") continue;
    const double limit = tolerance * std::max(largest[kind_of(name)], 1e-30);
    if (const auto why = difference(name, expected, computed, limit))
      throw UserError(where + ": it does not compute what PyTorch computed: the " + spoken(name) + " " + *why,
                      std::string(export_again) + "; if that does not help, report the network");
    ++compared;
  }
  return compared;
}

}  // namespace

ReferenceCheck check_reference(const std::filesystem::path& file) {
  const models::Exported network = models::read_exported(file);
  if (network.reference.empty()) return {.not_compared = "it has no reference batch of PyTorch"};
  const models::Graph graph = without_random_numbers(network.graph);
  if (draws(graph)) return {.not_compared = "it draws random numbers, and PyTorch draws others"};
  const std::string where = file.string() + ": reference batch";
  const auto all = networks::parse_safetensors(models::read_exported_entry(file, network.reference), where);
  ReferenceCheck check;
  try {
    for (const char* prefix : {"batch/", "one/"})
      if (const Tensors reference = part(all, prefix); !reference.empty())
        check.tensors += compare(network, graph, reference, where);
  } catch (const c10::Error& error) {
    throw UserError(where + ": the network fails: " + first_line(error.what_without_backtrace()),
                    export_again);
  }
  if (check.tensors == 0) throw UserError(where + " is empty", export_again);
  return check;
}

}  // namespace trainyard::runner
