// The cost of the operators of an exported graph, and the shapes of recurrent weights.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

// Sets `forward_flops` and `forward_bytes` of a node, for one sample of a batch.
// - They come from the sizes in the file, divided by `batch`, the number of samples in the author's example.
// - Only operators with many multiply-adds have operations, and only embeddings have bytes.
void count_cost(Node& node, const Values& values, double batch);

// Fault if the weights of a recurrent layer do not fit its sizes. oneDNN does not check them, and would crash.
// - `first_made`: the first value that a node makes. Weights must be stored tensors, whose sizes are certain.
// - The sizes of input and states are what the file says, so they must be checked again in a run.
// Other nodes are not checked.
void check_recurrent(const Node& node, const Values& values, ValueId first_made);

}  // namespace trainyard::models::pt2
