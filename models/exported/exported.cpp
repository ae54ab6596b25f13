#include "models/exported/exported.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "models/exported/archive.h"
#include "models/exported/arguments.h"
#include "models/exported/cost.h"
#include "models/exported/cuts.h"
#include "models/exported/json.h"
#include "models/exported/operators.h"
#include "models/exported/tensors.h"
#include "models/exported/values.h"

namespace trainyard::models {

namespace pt2 {
namespace {

constexpr std::size_t most_model_bytes = std::size_t{1} << 26U;
constexpr std::size_t most_metadata_bytes = std::size_t{1} << 20U;
constexpr std::size_t most_nodes = 100'000;
constexpr std::size_t most_arguments = 1000;  // of a node
constexpr std::int64_t schema = 8;
constexpr const char* model_entry = "models/model.json";
constexpr const char* metadata_entry = "extra/trainyard.json";
constexpr const char* evaluation_folder = "trainyard/evaluation/";
constexpr const char* constants_config = "model_constants_config.json";

bool is_read(const std::string& name) {
  return name == "archive_format" || name == "byteorder" || name == model_entry || name == metadata_entry ||
         name.starts_with("data/weights/") || name.starts_with("data/constants/") ||
         name.starts_with(evaluation_folder);
}

const std::string& entry(const Entries& entries, const std::string& name) {
  const auto found = entries.find(name);
  if (found == entries.end())
    throw Fault("the archive has no entry " + in_quotes(name) + ", so torch.export.save did not write it");
  return *found->second;
}

// The author's name of the innermost module: "layer1.0" of "L__self__,,Net;L__self__layer1_0,layer1.0,Conv2d".
std::string module_of(const Json& node) {
  constexpr std::size_t longest = 200;
  const Json* metadata = member_or_null(node, "metadata");
  const Json* stack = metadata == nullptr ? nullptr : member_or_null(*metadata, "nn_module_stack");
  if (stack == nullptr) return "";
  std::string_view text = text_in(*stack);
  text.remove_prefix(text.rfind(';') + 1);  // 0 without a ;
  const std::size_t first = text.find(',');
  if (first == std::string_view::npos) return "";
  text.remove_prefix(first + 1);
  text = text.substr(0, text.find(','));
  if (text == "_empty_nn_module_stack_from_metadata_hook") return "";  // PyTorch adds this node itself
  std::string name;
  for (const char letter : text)
    if (static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7F) name += letter;
  return shortened(printable_line(name), longest);
}

const Operator& operator_of(const std::string& kind) {
  const Operator* found = find_operator(kind);
  if (found != nullptr) return *found;
  if (kind.starts_with("higher_order."))
    throw Fault("it runs a part of the network as a region, and regions are not supported",
                "write the network without torch.cond, while_loop, no_grad, set_grad_enabled and autocast");
  if (kind.starts_with("aten.empty") || kind.starts_with("aten.new_empty"))
    throw Fault("this operator returns memory that nobody has set", "use zeros in place of empty");
  throw Fault("this operator is not supported",
              "write this part of the network with other operators of PyTorch");
}

using Tensors = std::map<std::string, StoredTensor>;  // by name

// The tensors of a graph: weights, buffers that are not saved, and constants.
struct Stored {
  const Tensors &weights, &buffers, &constants;
};

// Builds one graph of a file.
class Builder {
 public:
  Builder(const Json& model, const Stored& stored)
      : module_(member(model, "graph_module")),
        json_(member(module_, "graph")),
        values_(json_),
        stored_(stored) {}

  Exported build() {
    read_inputs();
    read_nodes();
    read_outputs();
    graph_.values = values_.count();
    finish_tensors();
    find_cuts(graph_, values_);
    exported_.graph = std::move(graph_);
    return std::move(exported_);
  }

 private:
  void read_inputs();
  void read_user_input(const Json& json);
  void read_stored_input(const std::string& kind, const Json& json);
  void read_nodes();
  void read_node(const Json& json, std::size_t index);
  void read_outputs();
  void finish_tensors();
  Exported::Input described(const std::string& name) const;

  const Json& module_;
  const Json& json_;
  Values values_;
  const Stored& stored_;
  using Place = std::tuple<const std::string*, Dtype, std::int64_t, std::vector<std::int64_t>,
                           std::vector<std::int64_t>>;
  std::map<Place, std::size_t> places_;  // of stored tensors; tied parameters have one place
  std::set<std::string> paths_;
  std::string batch_;   // symbolic expression of the number of samples; empty if it is a number
  double samples_ = 1;  // of the author's example
  Graph graph_{.inputs = 0, .values = 0};
  Exported exported_;
};

void Builder::read_inputs() {
  const auto& specs = list_in(member(member(module_, "signature"), "input_specs"));
  const auto& inputs = list_in(member(json_, "inputs"));
  if (specs.size() != inputs.size())
    throw Fault("the signature and the graph have different numbers of inputs");
  for (const Json& spec : specs) {
    const auto [kind, content] = choice_in(spec);
    if (kind == "user_input") read_user_input(content);
    if (kind == "constant_input")
      throw Fault(
          "the network has an input that is not a tensor: " + in_quotes(text_in(member(content, "name"))),
          "make it a constant of the module, so that forward takes only tensors");
  }
  if (graph_.inputs == 0)
    throw Fault("the network has no input", "export a network whose forward takes a batch");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto [kind, content] = choice_in(specs[i]);
    const Json& argument =
        kind == "user_input" ? member(member(content, "arg"), "as_tensor") : member(content, "arg");
    if (name_in(member(argument, "name")) != name_in(member(member(inputs[i], "as_tensor"), "name")))
      throw Fault(fmt::format("input {} has another name in the signature than in the graph", i));
    if (kind != "user_input") read_stored_input(kind, content);
  }
}

void Builder::read_user_input(const Json& json) {
  const auto [kind, content] = choice_in(member(json, "arg"));
  if (kind != "as_tensor")
    throw Fault(fmt::format("input {} of the network is not a tensor", graph_.inputs),
                "make it a constant of the module, so that forward takes only tensors");
  const std::string& name = name_in(member(content, "name"));
  const Description& description = values_[values_.add(name, true)].description;
  const bool symbolic = !description.sizes.empty() && !description.symbols.front().empty();
  if (batch_.empty() && !description.sizes.empty() && (symbolic || graph_.inputs == 0)) {
    batch_ = description.symbols.front();
    samples_ = static_cast<double>(std::max<std::int64_t>(1, description.sizes.front()));
  }
  ++graph_.inputs;
}

void Builder::read_stored_input(const std::string& kind, const Json& json) {
  using Role = StoredTensor::Role;
  static const std::map<std::string, std::pair<Role, const char*>> roles{
      {"parameter", {Role::parameter, "parameter_name"}},
      {"buffer", {Role::buffer, "buffer_name"}},
      {"tensor_constant", {Role::constant, "tensor_constant_name"}}};
  const auto role = roles.find(kind);
  if (role == roles.end())
    throw Fault("an input of the kind " + in_quotes(kind) + " is not supported",
                "use only tensors in the network");
  const std::string& name = name_in(member(json, role->second.second));
  within(kind + " " + in_quotes(name), [&] {
    const Tensors& others = role->second.first == Role::buffer ? stored_.buffers : stored_.constants;
    const StoredTensor* found = value_or_null(stored_.weights, name);
    if (found == nullptr && role->second.first != Role::parameter) found = value_or_null(others, name);
    if (found == nullptr) throw Fault("the file has no values for it");
    StoredTensor tensor = *found;
    tensor.role = role->second.first;
    tensor.requires_grad = tensor.requires_grad && tensor.role == Role::parameter;
    const std::string& input = name_in(member(member(json, "arg"), "name"));
    const Description description = values_.describe(input);
    if (description.dtype != tensor.dtype || description.sizes != tensor.sizes)
      throw Fault("its dtype and sizes are not those that the graph says");
    if (tensor.requires_grad && !is_floating(tensor.dtype)) throw Fault("it is trained, but has integers");
    const auto place =
        std::tuple(tensor.storage.get(), tensor.dtype, tensor.offset, tensor.sizes, tensor.strides);
    const auto [tied, is_new] = places_.emplace(place, graph_.tensors.size());
    if (!is_new) {
      const StoredTensor& other = graph_.tensors[tied->second];
      if (other.role != tensor.role || other.requires_grad != tensor.requires_grad)
        throw Fault("it shares its values with " + in_quotes(other.name) + ", which is of another kind");
      values_.add_name(input, other.value);
      return;
    }
    tensor.value = values_.add(input, true);
    graph_.tensors.push_back(std::move(tensor));
  });
}

void Builder::read_nodes() {
  const auto& nodes = list_in(member(json_, "nodes"), most_nodes);
  if (nodes.empty()) throw Fault("the graph has no nodes", "export a network that computes something");
  for (std::size_t i = 0; i < nodes.size(); ++i) read_node(nodes[i], i);
}

void Builder::read_node(const Json& json, std::size_t index) {
  Node node;
  std::string place = fmt::format("node {}", index);
  within(place, [&] { node.kind = name_in(member(json, "target")); });
  if (node.kind.starts_with("torch.ops.")) node.kind.erase(0, std::string("torch.ops.").size());
  const Json* name = member_or_null(json, "name");
  if (name != nullptr && name->is_string()) place += " " + in_quotes(name->get_ref<const std::string&>());
  within(place + " (" + printable_line(shortened(printable_line(node.kind), 80)) + ")", [&] {
    const Operator& called = operator_of(node.kind);
    std::set<std::string> given;
    for (const Json& input : list_in(member(json, "inputs"), most_arguments)) {
      const std::string& argument = name_in(member(input, "name"));
      if (!given.insert(argument).second)
        throw Fault("the argument " + in_quotes(argument) + " is there twice");
      node.arguments.push_back(within("argument " + in_quotes(argument),
                                      [&] { return read_argument(member(input, "arg"), values_, node); }));
      node.arguments.back().name = argument;
    }
    for (const Json& result : list_in(member(json, "outputs"), most_arguments))
      read_result(result, values_, node);
    node.path = node.makes.empty() ? "" : values_[node.makes.front()].name;
    if (node.makes.empty())
      node.path = name == nullptr ? fmt::format("{} {}", node.kind, index) : name_in(*name);
    if (!paths_.insert(node.path).second) throw Fault("another node has the same name");
    node.module = module_of(json);
    count_cost(node, values_, samples_);
    node.draws = called.draws != Draws::nothing && draws_for_whole_batch(node);
  });
  graph_.nodes.push_back(std::move(node));
}

Exported::Input Builder::described(const std::string& name) const {
  const Description description = values_.describe(name);
  if (!description.dtype)
    throw Fault("the dtype of " + in_quotes(name) + " is not supported",
                "use float32, float64, bfloat16, float16, bool, or integers of 8 to 64 bits");
  Exported::Input input{.name = name, .dtype = *description.dtype};
  for (std::size_t i = 0; i < description.sizes.size(); ++i) {
    const std::string& symbol = description.symbols[i];
    input.sizes.push_back(symbol.empty() ? description.sizes[i] : symbol == batch_ ? batch_size : any_size);
  }
  return input;
}

void Builder::read_outputs() {
  const auto& specs = list_in(member(member(module_, "signature"), "output_specs"));
  const auto& outputs = list_in(member(json_, "outputs"));
  if (specs.size() != outputs.size())
    throw Fault("the signature and the graph have different numbers of outputs");
  for (const Json& spec : specs) {
    const auto [kind, content] = choice_in(spec);
    if (kind == "buffer_mutation")
      throw Fault("the new value of the buffer " + in_quotes(text_in(member(content, "buffer_name"))) +
                      " is an output",
                  "save what torch.export.export returns, without run_decompositions");
    if (kind != "user_output")
      throw Fault("an output of the kind " + in_quotes(kind) + " is not supported",
                  "return only the result of the network");
    const auto [type, value] = choice_in(member(content, "arg"));
    if (type == "as_none" && !graph_.outputs.empty()) continue;
    if (type != "as_tensor")
      throw Fault("the output of the network is not a tensor",
                  "export a network whose forward returns a tensor");
    const std::string& name = name_in(member(value, "name"));
    if (name != name_in(member(member(outputs[&spec - specs.data()], "as_tensor"), "name")))
      throw Fault("the output has another name in the signature than in the graph");
    graph_.outputs.push_back(values_.find(name, true));
    exported_.outputs.push_back(described(name));
  }
  if (graph_.outputs.empty())
    throw Fault("the network has no output", "export a network that returns a tensor");
  for (ValueId input = 0; input < graph_.inputs; ++input)
    exported_.inputs.push_back(described(values_[input].name));
}

// Leaves out tensors that nobody reads, and counts the parameters of each node.
void Builder::finish_tensors() {
  std::vector<bool> read(graph_.values, false);
  std::map<ValueId, std::int64_t> trainable;
  for (const StoredTensor& tensor : graph_.tensors)
    if (tensor.requires_grad) trainable[tensor.value] = number_of_items(tensor.sizes).value_or(0);
  for (Node& node : graph_.nodes) {
    for (const ValueId value : node.reads) {
      const auto found = trainable.find(value);
      if (found != trainable.end() && !read[value]) node.parameters += found->second;
      read[value] = true;
    }
  }
  for (const ValueId value : graph_.outputs) read[value] = true;
  std::erase_if(graph_.tensors, [&](const StoredTensor& tensor) { return !read[tensor.value]; });
}

// Sets the rules of random nodes: {"NODE": [dimension, inner]}. Names of other nodes are ignored.
void read_rules(const Json* rules, Graph& graph) {
  constexpr std::int64_t most_dimensions = 64, most_inner = std::int64_t{1} << 31;
  if (rules == nullptr) return;
  for (const auto& [name, rule] : object_in(*rules))
    for (Node& node : graph.nodes) {
      if (node.path != name || !draws_random_numbers(node)) continue;
      const std::vector<Json>& numbers = list_in(rule, 2);
      const SampleRule found = numbers.size() == 2
                                   ? SampleRule{integer_in(numbers[0]), integer_in(numbers[1])}
                                   : SampleRule{-1, 0};
      if (found.dimension < 0 || found.dimension >= most_dimensions || found.inner < 0 ||
          found.inner > most_inner)
        throw Fault("the rule of the random node " + in_quotes(name) + " is not possible");
      node.by_sample = found;
      node.draws = false;
    }
}

// A network without a loss has one output. With one it has values [batch] beside it.
void read_loss(const Json* loss, Exported& exported) {
  const std::size_t outputs = exported.outputs.size();
  if (loss == nullptr) {
    if (outputs > 1)
      throw Fault("the network has more than one output",
                  "export a network whose forward returns one tensor");
    return;
  }
  OwnLoss& own = exported.own_loss;
  own.reduction = name_in(member(*loss, "reduction"));
  if (const Json* parts = member_or_null(*loss, "parts"))
    for (const Json& part : list_in(*parts, most_loss_parts)) own.parts.push_back(name_in(part));
  const bool known = own.reduction == "mean" || own.is_sum() || own.is_weighted();
  const auto has_values = [](const Exported::Input& output) {
    return output.sizes == std::vector{batch_size};
  };
  if (!known || outputs != own.outputs() || exported.inputs.size() < 2 ||
      !std::all_of(exported.outputs.begin() + 1, exported.outputs.end(), has_values))
    throw Fault("its loss is not described as `trainyard export` does", "export the network again");
}

// Sets the factors of parameter groups: {"NAME": [learning rate, weight decay]}. Names of other parameters are ignored.
void read_groups(const Json* groups, Graph& graph) {
  if (groups == nullptr) return;
  for (const auto& [name, factors] : object_in(*groups))
    for (StoredTensor& tensor : graph.tensors) {
      if (tensor.name != name || tensor.role != StoredTensor::Role::parameter) continue;
      const std::vector<Json>& numbers = list_in(factors, 2);
      if (numbers.size() != 2) throw Fault("the parameter group of " + in_quotes(name) + " is not possible");
      tensor.factors = {number_in(numbers[0]), number_in(numbers[1])};
      if (tensor.factors.learning_rate < 0 || tensor.factors.weight_decay < 0)
        throw Fault("the parameter group of " + in_quotes(name) + " has a negative factor");
    }
}

void read_metadata(const Entries& entries, Exported& exported) {
  const auto found = entries.find(metadata_entry);
  if (found == entries.end()) return read_loss(nullptr, exported);
  within(metadata_entry, [&] {
    const Json json = parsed(*found->second, most_metadata_bytes);
    object_in(json);
    if (const Json* task = member_or_null(json, "task")) exported.task = name_in(*task);
    read_loss(member_or_null(json, "loss"), exported);
    const Json* reference = member_or_null(json, "reference");
    const Json* file = reference == nullptr ? nullptr : member_or_null(*reference, "file");
    if (file != nullptr) exported.reference = name_in(*file);
    read_groups(member_or_null(json, "groups"), exported.graph);
    read_rules(member_or_null(json, "by_sample"), exported.graph);
    Graph evaluation = *exported.graph.evaluation;
    read_rules(member_or_null(json, "by_sample_in_evaluation"), evaluation);
    exported.graph.evaluation = std::make_shared<const Graph>(std::move(evaluation));
    exported.metadata = *found->second;
  });
}

Exported read_graph(const Entries& entries, const std::string& name, const Stored& stored) {
  return within(name, [&] {
    const Json model = parsed(entry(entries, name), most_model_bytes);
    const std::int64_t major = integer_in(member(member(model, "schema_version"), "major"));
    if (major != schema)
      throw Fault(fmt::format("its schema has version {}, but only version {} is supported", major, schema),
                  "export the network again with PyTorch 2.13");
    Exported result = Builder(model, stored).build();
    if (const Json* torch = member_or_null(model, "torch_version")) result.torch = name_in(*torch);
    return result;
  });
}

// Reads the evaluation graph. It has the parameters and buffers of the file, and its own constants.
void add_evaluation(const Entries& entries, const Tensors& weights, const Tensors& buffers,
                    Exported& training) {
  if (std::ranges::none_of(training.graph.tensors, std::mem_fn(&StoredTensor::requires_grad)))
    throw Fault("no node reads a parameter that is trained",
                "export the network with its parameters, and with requires_grad");
  const std::string folder = evaluation_folder, model = folder + "model.json";
  if (!entries.contains(model))
    throw Fault("it has no graph for evaluation",
                "export the network again with `trainyard export FILE.py:FUNCTION`");
  const Tensors constants = read_tensors(entries, folder + "constants/", constants_config);
  Exported evaluation =
      read_graph(entries, model, {.weights = weights, .buffers = buffers, .constants = constants});
  const auto same = [](const Exported::Input& one, const Exported::Input& other) {
    return one.dtype == other.dtype && one.sizes == other.sizes;
  };
  if (!std::ranges::equal(training.inputs, evaluation.inputs, same) ||
      !std::ranges::equal(training.outputs, evaluation.outputs, same))
    throw Fault("inputs or outputs in evaluation have other sizes or types than in training",
                "write a network whose results have the same sizes and types after eval()");
  match_cuts(training.graph, evaluation.graph);
  training.graph.evaluation = std::make_shared<const Graph>(std::move(evaluation.graph));
}

Exported read(const std::filesystem::path& path) {
  const Entries entries = read_entries(path, is_read);
  if (entry(entries, "archive_format") != "pt2")
    throw Fault("it is not an archive of torch.export.save", "write it with torch.export.save");
  if (entry(entries, "byteorder") != "little")
    throw Fault("its numbers are not little-endian", "export the network on a little-endian machine");
  const Tensors weights = read_tensors(entries, "data/weights/", "model_weights_config.json");
  const Tensors constants = read_tensors(entries, "data/constants/", constants_config);
  Exported exported =
      read_graph(entries, model_entry, {.weights = weights, .buffers = constants, .constants = constants});
  add_evaluation(entries, weights, constants, exported);
  read_metadata(entries, exported);
  return exported;
}

}  // namespace
}  // namespace pt2

Exported read_exported(const std::filesystem::path& path) {
  return pt2::for_file(path, [&] { return pt2::read(path); });
}

std::string read_exported_entry(const std::filesystem::path& path, const std::string& name) {
  return pt2::for_file(path, [&] {
    const auto entries = pt2::read_entries(path, [&](const std::string& one) { return one == name; });
    return pt2::entry(entries, name);
  });
}

}  // namespace trainyard::models
