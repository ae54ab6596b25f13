// The operators of PyTorch that a graph may call, and what trainyard must know about each.
// - They are listed by name with overload, never by namespace: `aten::from_file` writes files.
// - `aten::empty` and its relatives are not listed: they show old memory.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/graph.h"

namespace trainyard::models {

// When an operator draws random numbers.
enum class Draws {
  nothing,
  dropout,      // if its probability is above 0, and each sample can have numbers of its own
  if_dropout,   // if its probability of dropout is above 0
  if_training,  // if its argument `training` is true
  always
};

struct Operator {
  std::string_view name = {};    // "aten.linear.default"
  bool may_share = false;        // results may be the memory of the first argument
  std::string_view writes = {};  // names of the arguments that it overwrites, with spaces between
  Draws draws = Draws::nothing;
};

std::span<const Operator> operators();

// Null if the operator is not allowed.
const Operator* find_operator(std::string_view name);

// Whether the node overwrites its argument `argument`.
bool overwrites(const Operator& called, std::string_view argument);

// The argument `name` of an operator. Null if the file leaves it out, so that it has its default.
const Argument* find_argument(const Node& node, std::string_view name);

// The values that an argument reads, alone or in a list. `argument` may be null.
std::vector<ValueId> reads_of(const Node& node, const Argument* argument);

// Whether a node of an exported graph draws random numbers with these arguments.
bool draws_random_numbers(const Node& node);
// The same, but not for dropout, whose numbers can be keyed by sample.
bool draws_for_whole_batch(const Node& node);

}  // namespace trainyard::models
