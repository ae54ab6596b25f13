// The nodes of an exported graph at which a pipeline stage may begin.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

// Sets `may_begin_stage` and `begins_block` of all nodes, and `changes` of the tensors.
// - Values that may share memory are one memory, whether or not they share it in a run.
// - No stage begins between the first use of a memory and the last node that overwrites it. If each stage has the
//   memory (inputs and stored tensors), no stage begins between its first and its last use.
// - No stage begins if a tensor with complex numbers, or another dtype that `Dtype` lacks, would cross.
// - A block begins if exactly one tensor of floating-point numbers crosses. Parameters do not count.
// Fault if a node overwrites a parameter, or if a trained parameter or an overwritten buffer shares a part of its
// memory with another tensor.
void find_cuts(Graph& graph, const Values& values);

// Sets `in_evaluation` of the nodes of `training` at which a stage may begin.
// - A stage has the same tensors in both graphs, if training changes them. So no tensor moves before an evaluation.
// - It reads its parameters first in both graphs. Later stages get them as values that cross.
// - No stage begins at a node if the evaluation graph cannot be cut in this way.
void match_cuts(Graph& training, const Graph& evaluation);

}  // namespace trainyard::models::pt2
