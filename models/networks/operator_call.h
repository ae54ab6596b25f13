// A call of an operator of LibTorch, prepared from a node: the schema is looked up, and the arguments are
// matched, once. Used by operator_node.cpp only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "models/graph.h"
#include "models/networks/network.h"

namespace trainyard::networks {

using Stack = std::vector<at::IValue>;  // the arguments of a boxed call, then its results

// "node PATH of module MODULE (KIND)", for errors.
std::string described(const models::Node& node);

// Whether a result of the operator may have the memory of one of its inputs. UserError if there is no such operator.
bool may_share_memory(const models::Node& node);

class OperatorCall {
 public:
  // Replaces the arguments on the stack by the results.
  using Run = void (*)(const OperatorCall&, Stack&, const ForwardContext&);

  // UserError if this LibTorch has no such operator, or if an argument or a result does not fit its schema.
  OperatorCall(const models::Node& node, at::Device device);

  // Fills in the inputs and calls `run`.
  Activations operator()(Activations inputs, const ForwardContext& context, Run run) const;

  const c10::FunctionSchema& schema() const { return handle.schema(); }
  std::optional<std::size_t> position(const char* argument) const;

  // The argument with this name. The operator must have it.
  at::IValue& argument(Stack& stack, const char* argument_name) const;

  // Whether a call with these arguments draws random numbers.
  bool draws(const Stack& stack) const;

  // UserError with the name of the node.
  [[noreturn]] void refuse(const std::string& why, const std::string& advice = "") const;

  std::string name, path;  // as `described`, and Node::path
  std::optional<models::SampleRule> by_sample;
  c10::OperatorHandle handle;

 private:
  // An argument, or an item of a list: a constant, or one of the inputs.
  struct Source {
    at::IValue constant = {};
    std::optional<std::size_t> read = {};  // index into the inputs
    bool last = false;                     // nothing reads the input after this
  };
  // An argument of the schema.
  struct Type {
    c10::TypeKind kind{};       // as boxed calls use it: an integer stands for a type of numbers, for example
    c10::TypeKind real_kind{};  // as written in the schema
    bool optional = false;
    bool list = false;  // then `kind` is that of the items
    bool optional_items = false;
  };
  // An argument that depends on the inputs.
  struct Filled {
    std::size_t position = 0;  // among the arguments of the schema
    Type type;
    std::vector<Source> sources = {};
  };
  struct ToType;

  static Type type_of(const c10::Argument& argument);
  static at::IValue value_of(const Source& source, c10::TypeKind kind, Activations& inputs);
  static at::IValue value_of(const Filled& argument, Activations& inputs);

  [[noreturn]] void refuse_argument(const c10::Argument& schema, const std::string& why) const;
  void add(const c10::Argument& schema, const models::Argument* given, at::Device device);
  Source source_of(const c10::Argument& schema, const models::Argument& given, const ToType& to_type) const;
  void set_device(at::Device device);
  void mark_last_reads();
  void find_flags();
  void check_returned(const models::Node& node) const;
  Activations results(Stack& stack) const;

  std::size_t reads_;
  std::vector<models::Returned> returned_;
  Stack arguments_;  // None where `filled_` puts a value
  std::vector<Filled> filled_;
  std::vector<std::size_t> switches_;  // positions: nothing is drawn if one of them is false or 0
  bool random_ = false;
};

}  // namespace trainyard::networks
