#include "models/networks/operator_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/dropout.h"
#include "models/networks/random_stream.h"
#include "models/networks/stored_tensors.h"
#include "models/samples/random.h"

namespace trainyard::networks {

namespace {

using c10::TypeKind;
using Stack = std::vector<at::IValue>;

std::string described(const models::Node& node) {
  std::string text = "node " + node.path;
  if (!node.module.empty()) text += " of module " + node.module;
  return text + " (" + node.kind + ")";
}

// --- arguments: from the graph to the types of the schema

// An argument, or an item of a list: a constant, or one of the inputs.
struct Source {
  at::IValue constant = {};
  std::optional<std::size_t> read = {};  // index into the inputs
  bool last = false;                     // nothing reads the input after this
};

// An argument that depends on the inputs.
struct Filled {
  std::size_t position = 0;  // among the arguments of the schema
  TypeKind kind{};           // of the argument or of the items of the list
  bool list = false;
  bool optional_items = false;
  std::vector<Source> sources = {};
};

struct Type {
  TypeKind kind{};       // as boxed calls use it: integers also for types of numbers, memory orders, layouts
  TypeKind real_kind{};  // as written in the schema
  bool optional = false;
  bool list = false;
  bool optional_items = false;
};

at::TypePtr without_optional(const at::TypePtr& type) {
  return type->kind() == TypeKind::OptionalType ? type->castRaw<at::OptionalType>()->getElementType() : type;
}

at::TypePtr item_of(const at::TypePtr& list) {
  return list->castRaw<at::ListType>()->getElementType();
}

Type type_of(const c10::Argument& argument) {
  at::TypePtr type = without_optional(argument.type()), real = without_optional(argument.real_type());
  Type result;
  result.optional = argument.type()->kind() == TypeKind::OptionalType;
  result.list = type->kind() == TypeKind::ListType;
  if (result.list) {
    result.optional_items = item_of(type)->kind() == TypeKind::OptionalType;
    type = without_optional(item_of(type));
    if (real->kind() == TypeKind::ListType) real = without_optional(item_of(real));
  }
  result.kind = type->kind();
  result.real_kind = real->kind();
  return result;
}

at::IValue of_scalar(const at::Scalar& number, TypeKind kind) {
  if (kind == TypeKind::TensorType) return number_tensor(number);
  if (kind == TypeKind::NumberType) return number;
  const bool real = !number.isComplex();
  if (kind == TypeKind::FloatType && real) return number.toDouble();
  if (kind == TypeKind::IntType && number.isIntegral(/*includeBool=*/true)) return number.toLong();
  if (kind == TypeKind::BoolType && number.isBoolean()) return number.toBool();
  return {};
}

std::int64_t memory_format(models::MemoryOrder order) {
  using models::MemoryOrder;
  switch (order) {
    case MemoryOrder::contiguous:
      return static_cast<std::int64_t>(at::MemoryFormat::Contiguous);
    case MemoryOrder::channels_last:
      return static_cast<std::int64_t>(at::MemoryFormat::ChannelsLast);
    case MemoryOrder::channels_last_3d:
      return static_cast<std::int64_t>(at::MemoryFormat::ChannelsLast3d);
    case MemoryOrder::preserve:
      return static_cast<std::int64_t>(at::MemoryFormat::Preserve);
  }
  throw InternalError("there is no such memory order");
}

// A constant in the type of the schema. None if it has another type.
struct ToType {
  Type type;
  at::Device device;

  bool is_enumeration() const {
    return type.real_kind == TypeKind::ScalarTypeType || type.real_kind == TypeKind::MemoryFormatType ||
           type.real_kind == TypeKind::LayoutType;
  }

  at::IValue operator()(std::int64_t value) const {
    if (type.real_kind == TypeKind::LayoutType && value == 0) return strided();
    return is_enumeration() ? at::IValue() : of_scalar(value, type.kind);
  }
  at::IValue operator()(double value) const { return of_scalar(value, type.kind); }
  at::IValue operator()(bool value) const {
    return is_enumeration() ? at::IValue() : of_scalar(value, type.kind);
  }
  at::IValue operator()(const std::complex<double>& value) const {
    return of_scalar(c10::complex<double>(value), type.kind);
  }
  at::IValue operator()(const std::string& value) const {
    if (type.real_kind == TypeKind::LayoutType && value == "strided") return strided();
    return type.kind == TypeKind::StringType ? at::IValue(value) : at::IValue();
  }
  at::IValue operator()(models::Dtype value) const {
    if (type.real_kind != TypeKind::ScalarTypeType) return {};
    return static_cast<std::int64_t>(scalar_type(value));
  }
  at::IValue operator()(models::MemoryOrder value) const {
    return type.real_kind == TypeKind::MemoryFormatType ? at::IValue(memory_format(value)) : at::IValue();
  }
  at::IValue operator()(models::RunDevice) const {
    return type.kind == TypeKind::DeviceObjType ? at::IValue(device) : at::IValue();
  }
  template <class Other>  // None, a value that is read, a list
  at::IValue operator()(const Other&) const {
    return {};
  }

  static at::IValue strided() { return static_cast<std::int64_t>(at::Layout::Strided); }
};

bool reads_as(TypeKind kind) {
  return kind == TypeKind::TensorType || kind == TypeKind::IntType || kind == TypeKind::FloatType ||
         kind == TypeKind::BoolType || kind == TypeKind::NumberType;
}

template <class Item, class Convert>
at::IValue list_of(std::vector<at::IValue>& items, Convert convert) {
  c10::List<Item> list;
  list.reserve(items.size());
  for (at::IValue& item : items) list.push_back(convert(item));
  return list;
}

at::IValue as_list(TypeKind kind, bool optional_items, std::vector<at::IValue> items) {
  if (kind == TypeKind::TensorType && optional_items) {
    return list_of<std::optional<at::Tensor>>(items, [](at::IValue& item) -> std::optional<at::Tensor> {
      if (item.isNone()) return std::nullopt;
      return std::move(item).toTensor();
    });
  }
  if (kind == TypeKind::TensorType)
    return list_of<at::Tensor>(items, [](at::IValue& item) { return std::move(item).toTensor(); });
  if (kind == TypeKind::IntType)
    return list_of<std::int64_t>(items, [](const at::IValue& item) { return item.toInt(); });
  if (kind == TypeKind::FloatType)
    return list_of<double>(items, [](const at::IValue& item) { return item.toDouble(); });
  if (kind == TypeKind::BoolType)
    return list_of<bool>(items, [](const at::IValue& item) { return item.toBool(); });
  c10::impl::GenericList list{at::TypePtr(at::NumberType::get())};
  for (const at::IValue& item : items) list.push_back(item);
  return list;
}

at::IValue value_of(const Source& source, TypeKind kind, Activations& inputs) {
  if (!source.read) return source.constant;
  at::Tensor& value = inputs[*source.read];
  switch (kind) {
    case TypeKind::TensorType:
      return source.last ? at::IValue(std::move(value)) : at::IValue(value);
    case TypeKind::IntType:
      return value.item<std::int64_t>();
    case TypeKind::FloatType:
      return value.item<double>();
    case TypeKind::BoolType:
      return value.item<bool>();
    default:
      return value.item();
  }
}

at::IValue value_of(const Filled& argument, Activations& inputs) {
  if (!argument.list) return value_of(argument.sources.front(), argument.kind, inputs);
  std::vector<at::IValue> items;
  items.reserve(argument.sources.size());
  for (const Source& source : argument.sources) items.push_back(value_of(source, argument.kind, inputs));
  return as_list(argument.kind, argument.optional_items, std::move(items));
}

// --- an operator with its constant arguments

class Operator {
 public:
  Operator(const models::Node& node, at::Device device)
      : name(described(node)),
        path(node.path),
        handle(found(node)),
        reads_(node.reads.size()),
        returned_(node.returned) {
    std::map<std::string_view, const models::Argument*> given;
    for (const models::Argument& argument : node.arguments) given[argument.name] = &argument;
    if (given.size() != node.arguments.size()) refuse("it has an argument twice, or one without a name");
    for (const c10::Argument& argument : schema().arguments()) {
      const auto own = given.find(argument.name());
      add(argument, own == given.end() ? nullptr : own->second, device);
      if (own != given.end()) given.erase(own);
    }
    if (!given.empty()) refuse("it has no argument " + std::string(given.begin()->first));
    if (!arguments_on_tensors()) use(device);
    mark_last_reads();
    find_flags();
    check_returned(node);
  }

  Activations operator()(Activations inputs, const ForwardContext& context,
                         void (*run)(const Operator&, Stack&, const ForwardContext&)) const {
    if (inputs.size() != reads_) throw InternalError(name + " got another number of inputs than it reads");
    try {
      Stack stack = arguments_;
      for (const Filled& argument : filled_) stack[argument.position] = value_of(argument, inputs);
      if (!context.training)
        for (const auto& [position, value] : in_evaluation_) stack[position] = value;
      run(*this, stack, context);
      return results(stack);
    } catch (c10::Error& error) {
      error.add_context(name);
      throw;
    }
  }

  const c10::FunctionSchema& schema() const { return handle.schema(); }

  // The argument with this name. The operator must have it.
  at::IValue& argument(Stack& stack, const char* argument_name) const {
    return stack.at(static_cast<std::size_t>(schema().argumentIndexWithName(argument_name).value()));
  }
  std::optional<std::size_t> position(const char* argument_name) const {
    const auto index = schema().argumentIndexWithName(argument_name);
    if (!index) return std::nullopt;
    return static_cast<std::size_t>(*index);
  }

  // Whether a call with these arguments draws random numbers.
  bool draws(const Stack& stack) const {
    const auto is_off = [&](std::size_t place) {
      return (stack[place].isBool() && !stack[place].toBool()) ||
             (stack[place].isDouble() && stack[place].toDouble() == 0);
    };
    return random_ && std::none_of(switches_.begin(), switches_.end(), is_off);
  }

  [[noreturn]] void refuse(const std::string& why, const std::string& advice = "") const {
    throw UserError(name + " cannot be executed: " + why, advice);
  }

  std::string name, path;
  c10::OperatorHandle handle;

 private:
  static c10::OperatorHandle found(const models::Node& node) {
    constexpr std::string_view prefix = "aten.";
    const std::size_t dot = node.kind.rfind('.');
    if (dot > prefix.size() && node.kind.starts_with(prefix)) {
      const std::string overload = node.kind.substr(dot + 1);
      const auto handle = c10::Dispatcher::singleton().findSchema(
          {"aten::" + node.kind.substr(prefix.size(), dot - prefix.size()),
           overload == "default" ? "" : overload});
      if (handle) return *handle;
    }
    throw UserError(described(node) + " cannot be executed: this LibTorch has no such operator",
                    "export the network with the version of PyTorch that trainyard was built with");
  }

  [[noreturn]] void refuse_argument(const c10::Argument& schema, const std::string& why) const {
    refuse("its argument " + schema.name() + " " + why + ", but is " + schema.type()->str() +
           " in the schema of the operator");
  }

  void add(const c10::Argument& schema, const models::Argument* given, at::Device device) {
    if (given == nullptr) {
      const bool generator = without_optional(schema.type())->kind() == TypeKind::GeneratorType;
      if (!schema.default_value() && !generator) refuse_argument(schema, "is missing");
      arguments_.push_back(schema.default_value().value_or(at::IValue()));
      return;
    }
    const Type type = type_of(schema);
    arguments_.emplace_back();
    if (std::holds_alternative<std::monostate>(given->value)) {
      if (!type.optional) refuse_argument(schema, "is None");
      return;
    }
    Filled argument{arguments_.size() - 1, type.kind, type.list, type.optional_items};
    const ToType to_type{type, device};
    if (const auto* list = std::get_if<models::Argument::List>(&given->value)) {
      if (!type.list) refuse_argument(schema, "is a list");
      for (const models::Argument& item : *list)
        argument.sources.push_back(source_of(schema, item, type, to_type));
    } else {
      // one number for int[2] stands for two
      const std::int32_t count = type.list ? schema.N().value_or(1) : 1;
      const Source source = source_of(schema, *given, type, to_type);
      argument.sources.assign(static_cast<std::size_t>(std::max(count, 1)), source);
    }
    const bool constant = std::none_of(argument.sources.begin(), argument.sources.end(),
                                       [](const Source& source) { return source.read.has_value(); });
    if (!constant) {
      filled_.push_back(std::move(argument));
      return;
    }
    Activations no_inputs;
    at::IValue value = value_of(argument, no_inputs);
    const bool truth = type.kind == TypeKind::NumberType && value.isBool();  // a Scalar may be a bool
    if (!truth && !value.type()->isSubtypeOf(*schema.type())) refuse_argument(schema, "has another type");
    arguments_.back() = std::move(value);
  }

  Source source_of(const c10::Argument& schema, const models::Argument& given, const Type& type,
                   const ToType& to_type) const {
    if (type.list && !reads_as(type.kind)) refuse_argument(schema, "is a list of this type");
    if (const auto* read = std::get_if<models::Argument::Read>(&given.value)) {
      if (read->index >= reads_) throw InternalError(name + " has an argument that it does not read");
      if (!reads_as(type.kind) || to_type.is_enumeration())
        refuse_argument(schema, "is a value of the graph");
      return {{}, read->index, false};
    }
    if (type.list && type.optional_items && std::holds_alternative<std::monostate>(given.value)) return {};
    at::IValue constant = std::visit(to_type, given.value);
    if (constant.isNone()) refuse_argument(schema, "has another type");
    return {std::move(constant), {}, false};
  }

  bool arguments_on_tensors() const {
    const auto& all = schema().arguments();
    return std::any_of(all.begin(), all.end(), [](const c10::Argument& argument) {
      return type_of(argument).kind == TypeKind::TensorType;
    });
  }

  // New tensors are made on `device` if the node does not say where.
  void use(at::Device device) {
    const auto place = position("device");
    if (place && arguments_[*place].isNone()) arguments_[*place] = device;
  }

  void mark_last_reads() {
    std::map<std::size_t, Source*> last;
    for (Filled& argument : filled_)
      for (Source& source : argument.sources)
        if (source.read) last[*source.read] = &source;
    for (const auto& [read, source] : last) source->last = true;
  }

  bool is_given(const char* argument_name) const {
    const auto place = position(argument_name);
    const bool filled = std::any_of(filled_.begin(), filled_.end(),
                                    [&](const Filled& argument) { return argument.position == place; });
    return place && (filled || !arguments_[*place].isNone());
  }

  void find_flags() {
    random_ = handle.hasTag(at::Tag::nondeterministic_seeded);
    // without running statistics, normalisation uses those of the input in evaluation, too
    const bool follows = !position("running_mean") || is_given("running_mean");
    for (const char* flag : {"train", "training", "use_input_stats"}) {
      const auto place = position(flag);
      if (!place || !follows) continue;
      in_evaluation_.emplace_back(*place, false);
      switches_.push_back(*place);
    }
    if (const auto place = position("dropout_p")) in_evaluation_.emplace_back(*place, 0.0);
    for (const char* rate : {"dropout_p", "dropout"})
      if (const auto place = position(rate)) switches_.push_back(*place);
  }

  void check_returned(const models::Node& node) const {
    const auto& returns = schema().returns();
    std::size_t values = 0;
    for (std::size_t i = 0; i < returned_.size(); ++i) {
      values += returned_[i].values;
      if (returned_[i].values == 0 && !returned_[i].list) continue;
      const bool list = i < returns.size() && returns[i].type()->kind() == TypeKind::ListType;
      if (i >= returns.size() || list != returned_[i].list || (!list && returned_[i].values != 1))
        refuse("the graph expects other results than the operator returns");
    }
    if (values != node.makes.size()) throw InternalError(name + " does not return the values that it makes");
  }

  Activations results(Stack& stack) const {
    Activations values;
    for (std::size_t i = 0; i < returned_.size(); ++i) {
      if (returned_[i].list) {
        std::vector<at::Tensor> list = std::move(stack.at(i)).toTensorVector();
        if (list.size() != returned_[i].values) {
          refuse("it returned a list of " + std::to_string(list.size()) + " tensors, but the graph has " +
                     std::to_string(returned_[i].values),
                 "export the network with the sizes that it is trained with");
        }
        for (at::Tensor& tensor : list) values.push_back(std::move(tensor));
      } else if (returned_[i].values == 1) {
        at::IValue& value = stack.at(i);
        values.push_back(value.isTensor() ? std::move(value).toTensor() : number_tensor(value.toScalar()));
      }
    }
    return values;
  }

  std::size_t reads_;
  std::vector<models::Returned> returned_;
  Stack arguments_;  // None where `filled_` puts a value
  std::vector<Filled> filled_;
  std::vector<std::pair<std::size_t, at::IValue>> in_evaluation_;  // position, value
  std::vector<std::size_t> switches_;  // positions: nothing is drawn if one of them is false or 0
  bool random_ = false;
};

// --- execution

void run_boxed(const Operator& op, Stack& stack, const ForwardContext&) {
  op.handle.callBoxed(stack);
}

at::Device device_of(const Operator& op, const Stack& stack) {
  for (const at::IValue& value : stack)
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor().device();
  const auto place = op.position("device");
  return place && stack[*place].isDevice() ? stack[*place].toDevice() : at::Device(at::kCPU);
}

// With a generator that depends on seed, step and node.
void run_random(const Operator& op, Stack& stack, const ForwardContext& context) {
  if (!op.draws(stack)) return run_boxed(op, stack, context);
  if (context.step_on_device.defined())
    throw InternalError(op.name + " draws random numbers, which a CUDA graph would repeat in each step");
  const std::uint64_t seed = models::mixed_seed({stream_seed("random", context.seed, op.path),
                                                 static_cast<std::uint64_t>(context.step)}) >>
                             32;
  const at::Generator& usual = at::globalContext().defaultGenerator(device_of(op, stack));
  if (const auto place = op.position("generator")) {
    at::Generator own = usual.clone();
    own.set_current_seed(seed);
    stack[*place] = own;
    return run_boxed(op, stack, context);
  }
  static std::mutex of_default_generator;  // nobody else may draw between seed and call
  const std::lock_guard lock(of_default_generator);
  {
    at::Generator generator = usual;
    const std::lock_guard own_lock(generator.mutex());
    generator.set_current_seed(seed);
  }
  run_boxed(op, stack, context);
}

// Factors for dropout with probability `p`, 0 … 1: see dropout_factors.
at::Tensor factors_for(const Operator& op, const at::Tensor& like, double p, const ForwardContext& context) {
  const std::int64_t samples = context.samples.defined() ? context.samples.numel() : 0;
  if (like.dim() == 0 || like.size(0) != samples) {
    op.refuse("its input has sizes " + c10::str(like.sizes()) + ", but the batch has " +
                  std::to_string(samples) + " samples",
              "the first dimension of the input of dropout must be the batch");
  }
  if (!(p >= 0 && p <= 1)) op.refuse("its probability is not within 0 and 1");
  if (!like.is_floating_point()) op.refuse("its input is not of floating-point numbers");
  if (p == 1) return at::zeros_like(like);
  return dropout_factors(
      like, context.samples,
      {stream_seed("dropout", context.seed, op.path), context.step, p, context.step_on_device});
}

// dropout, feature_dropout, alpha_dropout, feature_alpha_dropout, and the same in place: (input, p, train).
void run_dropout(const Operator& op, Stack& stack, const ForwardContext& context) {
  const std::string& name = op.schema().name();
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const double p = stack[1].toDouble();
  const bool off = p == 0 || !stack[2].toBool();
  const at::Tensor x = std::move(stack[0]).toTensor();
  stack.clear();
  if (off || x.numel() == 0) {
    stack.emplace_back(x);
    return;
  }
  at::Tensor factors;
  if (has("feature_")) {
    if (x.dim() < 2) op.refuse("its input has no channels");
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
    std::copy_n(x.sizes().begin(), 2, sizes.begin());
    factors = factors_for(op, at::empty(sizes, x.options()), p, context);
  } else {
    factors = factors_for(op, x, p, context);
  }
  at::Tensor shift;
  if (has("alpha_") && p < 1) {  // Klambauer et al., "Self-normalizing neural networks", 2017
    constexpr double alpha = 1.7580993408473766;
    const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
    const at::Tensor kept = factors.ne(0).to(x.scalar_type());
    shift = kept.sub(1).mul_(alpha * a).add_(alpha * a * p);
    factors = kept.mul(a);
  }
  at::Tensor result = name.ends_with('_') ? x.mul_(factors) : x.mul(factors);
  if (shift.defined()) result.add_(shift);
  stack.emplace_back(std::move(result));
}

at::Tensor tensor_or_none(const at::IValue& value) {
  return value.isNone() ? at::Tensor() : value.toTensor();
}

// (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa). The last dimensions are
// [positions, features]. The dimension before is that of the heads.
void run_attention(const Operator& op, Stack& stack, const ForwardContext& context) {
  const double p = op.argument(stack, "dropout_p").toDouble();
  if (p == 0) return run_boxed(op, stack, context);
  const at::Tensor query = stack.at(0).toTensor(), mask = tensor_or_none(op.argument(stack, "attn_mask"));
  at::Tensor key = stack.at(1).toTensor(), value = stack.at(2).toTensor();
  const bool causal = op.argument(stack, "is_causal").toBool();
  const at::IValue& given_scale = op.argument(stack, "scale");
  if (query.dim() < 3 || key.dim() < 3 || value.dim() < 3)
    op.refuse("attention with dropout needs a batch, positions and features");
  if (causal && mask.defined()) op.refuse("it has a mask and is causal");
  if (op.argument(stack, "enable_gqa").toBool()) {  // several heads of queries share those of keys
    if (key.size(-3) == 0 || value.size(-3) == 0) op.refuse("its keys have no heads");
    key = key.repeat_interleave(query.size(-3) / key.size(-3), -3);
    value = value.repeat_interleave(query.size(-3) / value.size(-3), -3);
  }
  const double scale =
      given_scale.isNone() ? 1 / std::sqrt(static_cast<double>(query.size(-1))) : given_scale.toDouble();
  constexpr double never = -std::numeric_limits<double>::infinity();
  at::Tensor scores = at::matmul(query * scale, key.transpose(-2, -1));
  at::Tensor blind;  // queries that may see no key: their result is 0
  if (causal) {
    const at::Tensor seen =
        at::ones({query.size(-2), key.size(-2)}, scores.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), never);
  } else if (mask.defined()) {
    scores = mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), never) : scores + mask;
    blind = scores.eq(never).all(-1, /*keepdim=*/true);
    scores = scores.masked_fill(blind, 0);
  }
  at::Tensor weights = at::softmax(scores, -1);
  if (blind.defined()) weights = weights.masked_fill(blind, 0);
  weights = weights * factors_for(op, weights, p, context);
  stack.clear();
  stack.emplace_back(at::matmul(weights, value));
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
void run_batch_norm(const Operator& op, Stack& stack, const ForwardContext& context) {
  const bool synchronised = context.training && context.sum_over_replicas && stack.at(5).toBool();
  if (!synchronised) return run_boxed(op, stack, context);
  at::Tensor result = synchronised_batch_norm(stack.at(0).toTensor(), tensor_or_none(stack.at(1)),
                                              tensor_or_none(stack.at(2)), tensor_or_none(stack.at(3)),
                                              tensor_or_none(stack.at(4)), stack.at(6).toDouble(),
                                              stack.at(7).toDouble(), context);
  stack.clear();
  stack.emplace_back(std::move(result));
}

// The weights of a recurrent layer. oneDNN reads beyond them if their shapes are wrong.
// (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
void check_weights(const Operator& op, Stack& stack, std::int64_t gates) {
  const at::Tensor input = stack.at(0).toTensor();
  const std::vector<at::Tensor> states =
      stack.at(1).isTensor() ? std::vector{stack.at(1).toTensor()} : stack.at(1).toTensorVector();
  const std::vector<at::Tensor> weights = stack.at(2).toTensorVector();
  const bool biases = stack.at(3).toBool(), batch_first = stack.at(8).toBool();
  const std::int64_t layers = stack.at(4).toInt(), directions = stack.at(7).toBool() ? 2 : 1;
  const auto count = static_cast<std::int64_t>(weights.size());
  const bool is_lstm = gates == 4;
  const auto require = [&](bool right, const std::string& what) {
    if (!right) op.refuse(what, "the file is damaged or was made by another program");
  };

  require(input.dim() == 3, "the input of a recurrent layer must have three dimensions");
  require(states.size() == (is_lstm ? 2U : 1U), "it has another number of states than a recurrent layer");
  require(layers > 0 && layers <= count, "it has another number of layers than weights");
  const std::int64_t batch = input.size(batch_first ? 0 : 1), cells = layers * directions;
  const std::int64_t outputs = states.front().dim() == 3 ? states.front().size(2) : -1;
  const std::int64_t hidden = states.back().dim() == 3 ? states.back().size(2) : -1;
  const bool projects = outputs != hidden;
  for (const at::Tensor& state : states)
    require(state.dim() == 3 && state.size(0) == cells && state.size(1) == batch,
            "a state of the recurrent layer has sizes " + c10::str(state.sizes()));
  const std::int64_t of_cell = 2 + (biases ? 2 : 0) + (projects ? 1 : 0);
  require(count == cells * of_cell, "the recurrent layer has " + std::to_string(count) + " weights");

  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const std::int64_t inputs = cell < directions ? input.size(2) : outputs * directions;
    std::vector<std::vector<std::int64_t>> sizes{{gates * hidden, inputs}, {gates * hidden, outputs}};
    if (biases) sizes.insert(sizes.end(), 2, {gates * hidden});
    if (projects) sizes.push_back({outputs, hidden});
    for (std::int64_t i = 0; i < of_cell; ++i) {
      const at::Tensor& weight = weights[static_cast<std::size_t>(cell * of_cell + i)];
      const std::vector<std::int64_t>& right = sizes[static_cast<std::size_t>(i)];
      require(weight.sizes() == right, "a weight of the recurrent layer has sizes " +
                                           c10::str(weight.sizes()) + " instead of " +
                                           c10::str(at::IntArrayRef(right)));
      require(weight.scalar_type() == weights.front().scalar_type(),
              "the weights of the recurrent layer have different types");
    }
  }
}

template <std::int64_t gates>
void run_recurrent(const Operator& op, Stack& stack, const ForwardContext& context) {
  check_weights(op, stack, gates);
  run_random(op, stack, context);
}

void refuse_packed(const Operator& op, Stack&, const ForwardContext&) {
  op.refuse("packed sequences are not supported", "pad the sequences to one length");
}

struct Special {
  std::string_view kind;
  void (*run)(const Operator&, Stack&, const ForwardContext&);
};

constexpr std::array specials{
    Special{"aten.alpha_dropout.default", run_dropout},
    Special{"aten.alpha_dropout_.default", run_dropout},
    Special{"aten.batch_norm.default", run_batch_norm},
    Special{"aten.dropout.default", run_dropout},
    Special{"aten.dropout_.default", run_dropout},
    Special{"aten.feature_alpha_dropout.default", run_dropout},
    Special{"aten.feature_alpha_dropout_.default", run_dropout},
    Special{"aten.feature_dropout.default", run_dropout},
    Special{"aten.feature_dropout_.default", run_dropout},
    Special{"aten.gru.data", refuse_packed},
    Special{"aten.gru.input", run_recurrent<3>},
    Special{"aten.lstm.data", refuse_packed},
    Special{"aten.lstm.input", run_recurrent<4>},
    Special{"aten.rnn_relu.data", refuse_packed},
    Special{"aten.rnn_relu.input", run_recurrent<1>},
    Special{"aten.rnn_tanh.data", refuse_packed},
    Special{"aten.rnn_tanh.input", run_recurrent<1>},
    Special{"aten.scaled_dot_product_attention.default", run_attention},
};

// Assertions about sizes and types. They held when the network was exported.
constexpr std::array<std::string_view, 4> assertions{
    "aten._assert_scalar.default", "aten._assert_tensor_metadata.default", "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default"};

// --- operators of numbers, as in Python

using Numbers = std::vector<at::Scalar>;

struct NumberOperator {
  std::string_view kind;
  std::size_t operands;
  at::Scalar (*compute)(const Numbers&);
};

bool is_integral(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [](const at::Scalar& number) { return number.isIntegral(/*includeBool=*/true); });
}

std::int64_t exact(bool overflow, std::int64_t value) {
  if (overflow) throw std::range_error("its result does not fit into 64 bits");
  return value;
}

std::int64_t divisor(const Numbers& n) {
  if (n[1].toLong() == 0) throw std::range_error("it divides by 0");
  exact(n[1].toLong() == -1 && n[0].toLong() == std::numeric_limits<std::int64_t>::min(), 0);
  return n[1].toLong();
}

at::Scalar rounded_down(const Numbers& n) {
  if (!is_integral(n)) return std::floor(n[0].toDouble() / n[1].toDouble());
  const std::int64_t a = n[0].toLong(), b = divisor(n);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

at::Scalar remainder(const Numbers& n) {  // it has the sign of the divisor
  if (!is_integral(n)) throw std::range_error("only integers have a remainder here");
  const std::int64_t a = n[0].toLong(), b = divisor(n);
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}

at::Scalar negative(const Numbers& n) {
  if (!is_integral(n)) return -n[0].toDouble();
  std::int64_t result = 0;
  return exact(__builtin_sub_overflow(std::int64_t{0}, n[0].toLong(), &result), result);
}

enum class Arithmetic { add, subtract, multiply };

template <Arithmetic how>
at::Scalar arithmetic(const Numbers& n) {
  if (!is_integral(n)) {
    const double a = n[0].toDouble(), b = n[1].toDouble();
    return how == Arithmetic::add ? a + b : how == Arithmetic::subtract ? a - b : a * b;
  }
  const std::int64_t a = n[0].toLong(), b = n[1].toLong();
  std::int64_t result = 0;
  if constexpr (how == Arithmetic::add) return exact(__builtin_add_overflow(a, b, &result), result);
  if constexpr (how == Arithmetic::subtract) return exact(__builtin_sub_overflow(a, b, &result), result);
  return exact(__builtin_mul_overflow(a, b, &result), result);
}

template <class Compare>
at::Scalar comparison(const Numbers& n) {
  return is_integral(n) ? Compare()(n[0].toLong(), n[1].toLong())
                        : Compare()(n[0].toDouble(), n[1].toDouble());
}

template <class Compare>
at::Scalar chosen(const Numbers& n) {
  return comparison<Compare>(n).toBool() ? n[0] : n[1];
}

at::Scalar truncated(const Numbers& n) {
  const double value = is_integral(n) ? 0 : std::trunc(n[0].toDouble());
  exact(!(std::abs(value) < 0x1p63), 0);
  return is_integral(n) ? n[0].toLong() : static_cast<std::int64_t>(value);
}

constexpr std::array number_operators{
    NumberOperator{"_operator.add", 2, arithmetic<Arithmetic::add>},
    NumberOperator{"_operator.eq", 2, comparison<std::equal_to<>>},
    NumberOperator{"_operator.floordiv", 2, rounded_down},
    NumberOperator{"_operator.ge", 2, comparison<std::greater_equal<>>},
    NumberOperator{"_operator.gt", 2, comparison<std::greater<>>},
    NumberOperator{"_operator.le", 2, comparison<std::less_equal<>>},
    NumberOperator{"_operator.lt", 2, comparison<std::less<>>},
    NumberOperator{"_operator.mod", 2, remainder},
    NumberOperator{"_operator.mul", 2, arithmetic<Arithmetic::multiply>},
    NumberOperator{"_operator.ne", 2, comparison<std::not_equal_to<>>},
    NumberOperator{"_operator.neg", 1, negative},
    NumberOperator{"_operator.sub", 2, arithmetic<Arithmetic::subtract>},
    NumberOperator{"_operator.truediv", 2,
                   [](const Numbers& n) -> at::Scalar { return n[0].toDouble() / n[1].toDouble(); }},
    NumberOperator{"torch.sym_float", 1, [](const Numbers& n) -> at::Scalar { return n[0].toDouble(); }},
    NumberOperator{"torch.sym_int", 1, truncated},
    NumberOperator{"torch.sym_max", 2, chosen<std::greater_equal<>>},
    NumberOperator{"torch.sym_min", 2, chosen<std::less_equal<>>},
    NumberOperator{"torch.sym_not", 1, [](const Numbers& n) -> at::Scalar { return !n[0].toBool(); }},
};

Forward number_forward(const models::Node& node) {
  const std::string name = described(node);
  const NumberOperator* op = row_or_null(number_operators, &NumberOperator::kind, node.kind);
  if (op == nullptr) throw UserError(name + " cannot be executed: there is no such operator of numbers");
  if (node.arguments.size() != op->operands || node.makes.size() != 1)
    throw UserError(name + " cannot be executed: it has another number of arguments or results");
  Activations constants;
  std::vector<std::size_t> reads;
  for (const models::Argument& argument : node.arguments) {
    const auto* read = std::get_if<models::Argument::Read>(&argument.value);
    if (read != nullptr && read->index >= node.reads.size())
      throw InternalError(name + " has an argument that it does not read");
    Type number;
    number.kind = number.real_kind = TypeKind::NumberType;
    const at::IValue value = std::visit(ToType{number, at::kCPU}, argument.value);
    if (read == nullptr && !value.isScalar())
      throw UserError(name + " cannot be executed: an argument is not a number");
    constants.push_back(read == nullptr ? number_tensor(value.toScalar()) : at::Tensor());
    reads.push_back(read == nullptr ? 0 : read->index);
  }
  return [name, op, constants, reads](const Activations& inputs, const ForwardContext&) -> Activations {
    Numbers numbers;
    for (std::size_t i = 0; i < constants.size(); ++i)
      numbers.push_back((constants[i].defined() ? constants[i] : inputs.at(reads[i])).item());
    try {
      return {number_tensor(op->compute(numbers))};
    } catch (const std::range_error& error) {
      throw UserError(name + " cannot be executed: " + error.what());
    }
  };
}

bool is_of_numbers(const models::Node& node) {
  return node.kind.starts_with("_operator.") || node.kind.starts_with("torch.sym_");
}

}  // namespace

bool is_operator(const models::Node& node) {
  return node.kind.starts_with("aten.") || is_of_numbers(node);
}

Forward operator_forward(const models::Node& node, at::Device device) {
  if (is_of_numbers(node)) return number_forward(node);
  if (std::ranges::find(assertions, node.kind) != assertions.end() && node.makes.empty())
    return [](const Activations&, const ForwardContext&) { return Activations{}; };
  const Special* special = row_or_null(specials, &Special::kind, node.kind);
  const auto run = special == nullptr ? run_random : special->run;
  return [op = std::make_shared<const Operator>(node, device), run](Activations inputs,
                                                                    const ForwardContext& context) {
    return (*op)(std::move(inputs), context, run);
  };
}

at::Tensor number_tensor(const at::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor synchronised_batch_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   const at::Tensor& mean, const at::Tensor& variance, double momentum,
                                   double epsilon, const ForwardContext& context) {
  const std::int64_t channels = x.size(1);
  std::vector<std::int64_t> others{0}, of_channel(static_cast<std::size_t>(x.dim()), 1);
  for (std::int64_t i = 2; i < x.dim(); ++i) others.push_back(i);
  of_channel[1] = channels;
  const auto sum = [&](const at::Tensor& values) { return values.sum(others, false, at::kDouble); };
  const at::Tensor own_count = at::full({1}, x.numel() / channels, x.options().dtype(at::kDouble));
  // the sums of x, x² and 1
  const at::Tensor sums = context.sum_over_replicas(at::cat({sum(x), sum(x.square()), own_count}));
  const at::Tensor count = sums.slice(0, 2 * channels).detach();
  const at::Tensor batch_mean = sums.slice(0, 0, channels) / count;
  const at::Tensor batch_variance =
      (sums.slice(0, channels, 2 * channels) / count - batch_mean.square()).clamp_min(0);
  if (mean.defined() && variance.defined()) {
    const at::NoGradGuard no_grad;
    mean.lerp_(batch_mean.to(mean.dtype()), momentum);
    variance.lerp_((batch_variance * (count / (count - 1))).to(variance.dtype()), momentum);
  }
  at::Tensor scale = (batch_variance + epsilon).rsqrt();
  if (weight.defined()) scale = weight * scale;
  at::Tensor shift = batch_mean * scale;
  shift = bias.defined() ? bias - shift : -shift;
  return x * scale.to(x.dtype()).view(of_channel) + shift.to(x.dtype()).view(of_channel);
}

}  // namespace trainyard::networks
