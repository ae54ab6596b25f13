#include "models/networks/operator_call.h"

#include <algorithm>
#include <array>
#include <complex>
#include <map>
#include <string_view>
#include <variant>

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/networks/operator_node.h"
#include "models/networks/stored_tensors.h"

namespace trainyard::networks {

using c10::TypeKind;

namespace {

at::TypePtr without_optional(const at::TypePtr& type) {
  return type->kind() == TypeKind::OptionalType ? type->castRaw<at::OptionalType>()->getElementType() : type;
}

at::TypePtr item_of(const at::TypePtr& list) {
  return list->castRaw<at::ListType>()->getElementType();
}

// A number in the type of a schema. None if it does not fit.
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
  constexpr std::array formats{at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
                               at::MemoryFormat::ChannelsLast3d,
                               at::MemoryFormat::Preserve};  // in the order of MemoryOrder
  return static_cast<std::int64_t>(formats.at(static_cast<std::size_t>(order)));
}

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

c10::OperatorHandle found(const models::Node& node) {
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

}  // namespace

std::string described(const models::Node& node) {
  std::string text = "node " + node.path;
  if (!node.module.empty()) text += " of module " + node.module;
  return text + " (" + node.kind + ")";
}

// A constant in the type of the schema. None if it has another type.
struct OperatorCall::ToType {
  Type type;
  at::Device device;

  bool is_enumeration() const {
    return type.real_kind == TypeKind::ScalarTypeType || type.real_kind == TypeKind::MemoryFormatType ||
           type.real_kind == TypeKind::LayoutType;
  }

  at::IValue operator()(std::int64_t value) const {
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
};

OperatorCall::Type OperatorCall::type_of(const c10::Argument& argument) {
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

at::IValue OperatorCall::value_of(const Source& source, TypeKind kind, Activations& inputs) {
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

at::IValue OperatorCall::value_of(const Filled& argument, Activations& inputs) {
  const TypeKind kind = argument.type.kind;
  if (!argument.type.list) return value_of(argument.sources.front(), kind, inputs);
  std::vector<at::IValue> items;
  items.reserve(argument.sources.size());
  for (const Source& source : argument.sources) items.push_back(value_of(source, kind, inputs));
  return as_list(kind, argument.type.optional_items, std::move(items));
}

bool may_share_memory(const models::Node& node) {
  return std::ranges::any_of(found(node).schema().returns(),
                             [](const c10::Argument& result) { return result.alias_info() != nullptr; });
}

OperatorCall::OperatorCall(const models::Node& node, at::Device device)
    : name(described(node)),
      path(node.path),
      by_sample(node.by_sample),
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
  set_device(device);
  mark_last_reads();
  find_flags();
  check_returned(node);
}

Activations OperatorCall::operator()(Activations inputs, const ForwardContext& context, Run run) const {
  if (inputs.size() != reads_) throw InternalError(name + " got another number of inputs than it reads");
  try {
    Stack stack = arguments_;
    for (const Filled& argument : filled_) stack[argument.position] = value_of(argument, inputs);
    run(*this, stack, context);
    return results(stack);
  } catch (c10::Error& error) {
    error.add_context(name);
    throw;
  }
}

at::IValue& OperatorCall::argument(Stack& stack, const char* argument_name) const {
  return stack.at(static_cast<std::size_t>(schema().argumentIndexWithName(argument_name).value()));
}
std::optional<std::size_t> OperatorCall::position(const char* argument) const {
  const auto index = schema().argumentIndexWithName(argument);
  if (!index) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

bool OperatorCall::draws(const Stack& stack) const {
  const auto is_off = [&](std::size_t place) {
    return (stack[place].isBool() && !stack[place].toBool()) ||
           (stack[place].isDouble() && stack[place].toDouble() == 0);
  };
  return random_ && std::none_of(switches_.begin(), switches_.end(), is_off);
}

void OperatorCall::refuse(const std::string& why, const std::string& advice) const {
  throw UserError(name + " cannot be executed: " + why, advice);
}

void OperatorCall::refuse_argument(const c10::Argument& schema, const std::string& why) const {
  refuse("its argument " + schema.name() + " " + why + ", but is " + schema.type()->str() +
         " in the schema of the operator");
}

void OperatorCall::add(const c10::Argument& schema, const models::Argument* given, at::Device device) {
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
  Filled argument{arguments_.size() - 1, type};
  const ToType to_type{type, device};
  if (const auto* list = std::get_if<models::Argument::List>(&given->value)) {
    if (!type.list) refuse_argument(schema, "is a list");
    for (const models::Argument& item : *list) argument.sources.push_back(source_of(schema, item, to_type));
  } else {
    // one number for int[2] stands for two
    const std::int32_t count = type.list ? schema.N().value_or(1) : 1;
    const Source source = source_of(schema, *given, to_type);
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

OperatorCall::Source OperatorCall::source_of(const c10::Argument& schema, const models::Argument& given,
                                             const ToType& to_type) const {
  const Type& type = to_type.type;
  if (type.list && !reads_as(type.kind)) refuse_argument(schema, "is a list of this type");
  if (const auto* read = std::get_if<models::Argument::Read>(&given.value)) {
    if (read->index >= reads_) throw InternalError(name + " has an argument that it does not read");
    if (!reads_as(type.kind) || to_type.is_enumeration()) refuse_argument(schema, "is a value of the graph");
    return {{}, read->index, false};
  }
  if (type.list && type.optional_items && std::holds_alternative<std::monostate>(given.value)) return {};
  at::IValue constant = std::visit(to_type, given.value);
  if (constant.isNone()) refuse_argument(schema, "has another type");
  return {std::move(constant), {}, false};
}

// Operators that make tensors from numbers only make them on `device` if the node does not say where.
void OperatorCall::set_device(at::Device device) {
  const auto& all = schema().arguments();
  const bool reads_tensors = std::any_of(all.begin(), all.end(), [](const c10::Argument& argument) {
    return type_of(argument).kind == TypeKind::TensorType;
  });
  const auto place = position("device");
  if (!reads_tensors && place && arguments_[*place].isNone()) arguments_[*place] = device;
}

void OperatorCall::mark_last_reads() {
  std::map<std::size_t, Source*> last;
  for (Filled& argument : filled_)
    for (Source& source : argument.sources)
      if (source.read) last[*source.read] = &source;
  for (const auto& [read, source] : last) source->last = true;
}

void OperatorCall::find_flags() {
  random_ = handle.hasTag(at::Tag::nondeterministic_seeded);
  for (const char* flag : {"train", "training", "dropout_p", "dropout"})
    if (const auto place = position(flag)) switches_.push_back(*place);
}

void OperatorCall::check_returned(const models::Node& node) const {
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

Activations OperatorCall::results(Stack& stack) const {
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

}  // namespace trainyard::networks
