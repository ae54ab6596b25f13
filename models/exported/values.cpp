#include "models/exported/values.h"

#include "models/exported/tensors.h"

namespace trainyard::models::pt2 {

namespace {

constexpr std::int64_t unknown_size = 1;  // a symbolic size without an example

// One size: {"as_int": 3}, or {"as_expr": {"expr_str": …, "hint": {"as_int": 4}}}. The expression is never evaluated.
void add_size(const Json& json, Description& description) {
  const auto [kind, content] = choice_in(json);
  if (kind == "as_int") {
    description.sizes.push_back(integer_in(content));
    description.symbols.emplace_back();
    return;
  }
  if (kind != "as_expr") throw Fault("a size of the kind " + in_quotes(kind) + " is unknown");
  const Json* hint = member_or_null(content, "hint");
  description.sizes.push_back(hint == nullptr ? unknown_size : integer_in(member(*hint, "as_int")));
  description.symbols.push_back(text_in(member(content, "expr_str")));
  if (description.symbols.back().empty()) throw Fault("a symbolic size has no name");
}

}  // namespace

double Description::items() const {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

ValueId Values::add(const std::string& name, bool tensor) {
  const ValueId value = values_.size();
  add_name(name, value);
  values_.push_back({.name = name, .tensor = tensor, .description = tensor ? describe(name) : Description{}});
  return value;
}

void Values::add_name(const std::string& name, ValueId value) {
  if (!ids_.emplace(name, value).second) throw Fault("the name " + in_quotes(name) + " is there twice");
}

ValueId Values::find(const std::string& name, bool tensor) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) throw Fault("the value " + in_quotes(name) + " is read before it is made");
  if (values_[found->second].tensor != tensor)
    throw Fault("the value " + in_quotes(name) +
                (tensor ? " is a number, not a tensor" : " is a tensor, not a number"));
  return found->second;
}

Description Values::describe(const std::string& name) const {
  return within("value " + in_quotes(name), [&] {
    const Json* about = member_or_null(member(json_, "tensor_values"), name);
    if (about == nullptr) throw Fault("the file does not describe this tensor");
    Description description{
        .dtype = dtype_of(integer_in(member(*about, "dtype"))), .sizes = {}, .symbols = {}};
    for (const Json& size : list_in(member(*about, "sizes"), most_dimensions)) add_size(size, description);
    if (!number_of_items(description.sizes))
      throw Fault("its size is negative or too large", "export the network with smaller tensors");
    return description;
  });
}

}  // namespace trainyard::models::pt2
