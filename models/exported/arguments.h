// Arguments and results of the nodes of an exported graph.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

inline constexpr std::size_t most_list_items = 10'000;  // of an argument or a result

// Reads an argument ({"as_tensor": {"name": "x"}}) and adds what it reads to `node.reads`.
// - A layout is None: all tensors are dense.
// - A device is the device of the run.
// Fault if the kind of argument is not supported, or it reads an unknown value.
Argument read_argument(const Json& json, const Values& values, Node& node);

// Reads a result, adds its values to `values`, and adds it to `node.makes` and `node.returned`.
// Fault if the kind of result is not supported, or a name is taken.
void read_result(const Json& json, Values& values, Node& node);

}  // namespace trainyard::models::pt2
