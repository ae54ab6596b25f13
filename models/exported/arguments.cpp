#include "models/exported/arguments.h"

#include <map>

#include <fmt/format.h>

#include "base/named_row.h"
#include "models/exported/tensors.h"

namespace trainyard::models::pt2 {

namespace {

constexpr std::size_t most_text_bytes = 10'000;

// Reads one argument of a node, without its name.
class ArgumentReader {
 public:
  ArgumentReader(const Values& values, Node& node) : values_(values), node_(node) {}

  Argument read(const std::string& kind, const Json& json) {
    static const std::map<std::string, Kind> kinds{
        {"as_none", {&ArgumentReader::none}},
        {"as_tensor", {&ArgumentReader::tensor, true}},
        {"as_optional_tensor", {&ArgumentReader::optional_tensor, true}},
        {"as_int", {&ArgumentReader::integer, true}},
        {"as_float", {&ArgumentReader::number, true}},
        {"as_bool", {&ArgumentReader::flag, true}},
        {"as_string", {&ArgumentReader::text, true}},
        {"as_sym_int", {&ArgumentReader::computed, true}},
        {"as_sym_float", {&ArgumentReader::computed, true}},
        {"as_sym_bool", {&ArgumentReader::computed, true}},
        {"as_complex", {&ArgumentReader::complex}},
        {"as_scalar_type", {&ArgumentReader::dtype}},
        {"as_memory_format", {&ArgumentReader::memory_order}},
        {"as_layout", {&ArgumentReader::layout}},
        {"as_device", {&ArgumentReader::device}},
    };
    if (kind == "as_graph")
      throw Fault("it runs a part of the network as a region, and regions are not supported",
                  "write the network without torch.cond, while_loop, no_grad, set_grad_enabled and autocast");
    if (const Kind* found = value_or_null(kinds, kind)) return (this->*found->read)(json);
    const Kind* item = kind.ends_with('s') ? value_or_null(kinds, kind.substr(0, kind.size() - 1)) : nullptr;
    if (item == nullptr || !item->has_lists)
      throw Fault("arguments of the kind " + in_quotes(kind) + " are not supported",
                  "write this part differently");
    Argument::List items;
    for (const Json& one : list_in(json, most_list_items)) items.push_back((this->*item->read)(one));
    return {.name = {}, .value = std::move(items)};
  }

 private:
  struct Kind {
    Argument (ArgumentReader::*read)(const Json&);
    bool has_lists = false;  // the kind of a list is that of its items with an "s"
  };

  Argument none(const Json& /*json*/) { return {}; }
  Argument tensor(const Json& json) { return value(member(json, "name"), true); }
  Argument optional_tensor(const Json& json) {
    const auto [kind, content] = choice_in(json);
    if (kind == "as_none") return {};
    if (kind != "as_tensor") throw Fault("a tensor of the kind " + in_quotes(kind) + " is unknown");
    return tensor(content);
  }
  Argument integer(const Json& json) { return {.name = {}, .value = integer_in(json)}; }
  Argument number(const Json& json) { return {.name = {}, .value = number_in(json)}; }
  Argument flag(const Json& json) { return {.name = {}, .value = flag_in(json)}; }
  Argument text(const Json& json) {
    const std::string& text = text_in(json);
    if (text.size() > most_text_bytes)
      throw Fault(
          fmt::format("a text has {} bytes, but at most {} are allowed", text.size(), most_text_bytes));
    return {.name = {}, .value = text};
  }
  // A number that a node computes, or one among those: {"as_name": "sym_size_int"}, {"as_int": 3}.
  Argument computed(const Json& json) {
    const auto [kind, content] = choice_in(json);
    if (kind == "as_name") return value(content, false);
    if (kind == "as_int") return integer(content);
    if (kind == "as_float") return number(content);
    if (kind == "as_bool") return flag(content);
    throw Fault("a number of the kind " + in_quotes(kind) + " is unknown");
  }
  Argument complex(const Json& json) {
    return {.name = {},
            .value = std::complex<double>(number_in(member(json, "real")), number_in(member(json, "imag")))};
  }
  Argument dtype(const Json& json) { return {.name = {}, .value = supported_dtype(integer_in(json))}; }
  Argument memory_order(const Json& json) {
    const std::int64_t code = integer_in(json);
    if (code < 1 || code > 4) throw Fault(fmt::format("the memory format {} is unknown", code));
    return {.name = {}, .value = static_cast<MemoryOrder>(code - 1)};  // the codes have the order of the enum
  }

  Argument layout(const Json& json) {
    if (integer_in(json) != strided_layout)
      throw Fault("tensors that are not dense are not supported", "write the network with dense tensors");
    return {};
  }
  Argument device(const Json& json) {
    object_in(json);
    return {.name = {}, .value = RunDevice{}};
  }

  Argument value(const Json& name, bool is_tensor) {
    const ValueId found = values_.find(name_in(name), is_tensor);
    node_.reads.push_back(found);
    return {.name = {}, .value = Argument::Read{node_.reads.size() - 1}};
  }

  const Values& values_;
  Node& node_;
};

}  // namespace

Argument read_argument(const Json& json, const Values& values, Node& node) {
  const auto [kind, content] = choice_in(json);
  return ArgumentReader(values, node).read(kind, content);
}

void read_result(const Json& json, Values& values, Node& node) {
  const auto [kind, content] = choice_in(json);
  const auto make = [&](const Json& name, bool tensor) {
    node.makes.push_back(values.add(name_in(name), tensor));
  };
  if (kind == "as_none") {
    node.returned.push_back({.values = 0});
  } else if (kind == "as_tensor") {
    make(member(content, "name"), true);
    node.returned.push_back({});
  } else if (kind == "as_tensors") {
    const auto& items = list_in(content, most_list_items);
    for (const Json& item : items) make(member(item, "name"), true);
    node.returned.push_back({.values = items.size(), .list = true});
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    make(member(content, "as_name"), false);
    node.returned.push_back({});
  } else {
    throw Fault("results of the kind " + in_quotes(kind) + " are not supported",
                "write this part differently");
  }
}

}  // namespace trainyard::models::pt2
