// The cost of the operators of an exported graph, and the shapes of recurrent weights.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

// Sets `forward_flops` and `forward_bytes` of a node, for one sample of a batch.
// - They come from the sizes in the file, divided by `batch`, the number of samples in the author's example.
// - Only operators with many multiply-adds have operations, and only embeddings have bytes.
void count_cost(Node& node, const Values& values, double batch);

// Fault if the weights of a recurrent layer do not fit its sizes, so that the file is refused before a run.
// - The sizes are what the file says. They must be checked again in a run, because oneDNN would crash.
// Other nodes are not checked.
void check_recurrent(const Node& node, const Values& values);

}  // namespace trainyard::models::pt2
