// Where a pipeline stage may begin in an exported graph.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

// Sets `may_begin_stage` and `begins_block` of all nodes.
// - Values that may share memory are one memory, whether or not they share it in a run.
// - No stage begins between the first use of a memory and the last node that overwrites it. If each stage has the
//   memory (inputs and stored tensors), no stage begins between its first and its last use.
// - No stage begins where a tensor crosses whose dtype `Dtype` does not have, complex numbers for example.
// - A block begins where exactly one tensor of floating-point numbers crosses. Parameters do not count.
// Fault if a node overwrites a parameter, or a buffer that shares a part of its storage with another tensor.
void find_cuts(Graph& graph, const Values& values);

}  // namespace trainyard::models::pt2
