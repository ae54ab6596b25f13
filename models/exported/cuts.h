// The nodes of an exported graph at which a pipeline stage may begin.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

// Sets `may_begin_stage` and `begins_block` of all nodes.
// - Values that may share memory are one memory, whether or not they share it in a run.
// - No stage begins between the first use of a memory and the last node that overwrites it. If each stage has the
//   memory (inputs and stored tensors), no stage begins between its first and its last use.
// - No stage begins if a tensor with complex numbers, or another dtype that `Dtype` lacks, would cross.
// - A block begins if exactly one tensor of floating-point numbers crosses. Parameters do not count.
// Fault if a node overwrites a parameter, or if a trained parameter or an overwritten buffer shares a part of its
// memory with another tensor.
void find_cuts(Graph& graph, const Values& values);

}  // namespace trainyard::models::pt2
