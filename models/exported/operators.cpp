#include "models/exported/operators.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace trainyard::models {

// operators.txt: the names of operators. Those after [new] return new memory, those after [shared] may return
// the memory of their first argument, and those after [random] return new memory with random numbers.
std::string_view operators_txt();

namespace {

// A result of `batch_norm` is always new memory, and its schema does not say that it writes statistics.
constexpr std::array<Operator, 15> others{
    {{.name = "aten.alpha_dropout.default", .may_share = true, .draws = Draws::always},
     {.name = "aten.batch_norm.default", .writes = "running_mean running_var"},
     {.name = "aten.div.out", .writes = "out"},
     {.name = "aten.dropout.default", .may_share = true, .draws = Draws::dropout},
     {.name = "aten.dropout_.default", .draws = Draws::dropout},
     {.name = "aten.feature_alpha_dropout.default", .may_share = true, .draws = Draws::always},
     {.name = "aten.feature_dropout.default", .may_share = true, .draws = Draws::dropout},
     {.name = "aten.feature_dropout_.default", .draws = Draws::dropout},
     {.name = "aten.gru.input", .draws = Draws::if_dropout},
     {.name = "aten.instance_norm.default", .writes = "running_mean running_var"},
     {.name = "aten.lstm.input", .draws = Draws::if_dropout},
     {.name = "aten.rnn_relu.input", .draws = Draws::if_dropout},
     {.name = "aten.rnn_tanh.input", .draws = Draws::if_dropout},
     {.name = "aten.rrelu.default", .draws = Draws::if_training},
     {.name = "aten.scaled_dot_product_attention.default", .draws = Draws::dropout}}};

// No std::views: clang 14 cannot compile them with the library of GCC 12.
std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; (end = text.find_first_of(" \n")) != std::string_view::npos;) {
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) words.push_back(text);
  return words;
}

// Sorted by name. Those of the text whose name ends with "_" overwrite `self`.
std::vector<Operator> all_operators() {
  std::vector<Operator> all(others.begin(), others.end());
  Operator like;
  for (const std::string_view word : split_words(operators_txt())) {
    if (word.starts_with('[')) {
      like = {.may_share = word == "[shared]", .draws = word == "[random]" ? Draws::always : Draws::nothing};
      continue;
    }
    all.push_back(like);
    all.back().name = word;
  }
  for (Operator& each : all)
    if (each.name.find("_.") != std::string_view::npos && each.name.find("__.") == std::string_view::npos)
      each.writes = "self";
  std::ranges::sort(all, {}, &Operator::name);
  return all;
}

bool is_positive(const Argument* argument) {
  if (argument == nullptr) return false;
  if (const auto* number = std::get_if<double>(&argument->value)) return *number > 0;
  if (const auto* number = std::get_if<std::int64_t>(&argument->value)) return *number > 0;
  return !std::holds_alternative<std::monostate>(argument->value);  // computed: it can be positive
}

bool is_false(const Argument* argument) {
  return argument != nullptr && argument->value == decltype(argument->value)(false);
}

}  // namespace

std::span<const Operator> operators() {
  static const std::vector<Operator> all = all_operators();
  return all;
}

const Operator* find_operator(std::string_view name) {
  const auto found = std::ranges::lower_bound(operators(), name, {}, &Operator::name);
  return found != operators().end() && found->name == name ? &*found : nullptr;
}

bool overwrites(const Operator& called, std::string_view argument) {
  const auto names = split_words(called.writes);
  return std::ranges::find(names, argument) != names.end();
}

const Argument* find_argument(const Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.arguments, name, &Argument::name);
  return found == node.arguments.end() ? nullptr : &*found;
}

std::vector<ValueId> reads_of(const Node& node, const Argument* argument) {
  std::vector<ValueId> values;
  if (argument == nullptr) return values;
  const auto add = [&](const Argument& one) {
    if (const auto* read = std::get_if<Argument::Read>(&one.value)) values.push_back(node.reads[read->index]);
  };
  add(*argument);
  if (const auto* items = std::get_if<Argument::List>(&argument->value))
    std::for_each(items->begin(), items->end(), add);
  return values;
}

bool draws_random_numbers(const Node& node) {
  const Operator* called = find_operator(node.kind);
  if (called == nullptr) throw InternalError("an exported graph has an operator that is not listed");
  switch (called->draws) {
    case Draws::nothing:
      return false;
    case Draws::always:
      return true;
    case Draws::dropout:
    case Draws::if_dropout:
      return !is_false(find_argument(node, "train")) &&
             (is_positive(find_argument(node, "p")) || is_positive(find_argument(node, "dropout")) ||
              is_positive(find_argument(node, "dropout_p")));
    case Draws::if_training: {
      const Argument* training = find_argument(node, "training");
      return training != nullptr && !is_false(training);
    }
  }
  return true;
}

bool draws_for_whole_batch(const Node& node) {
  return draws_random_numbers(node) && find_operator(node.kind)->draws != Draws::dropout;
}

}  // namespace trainyard::models
