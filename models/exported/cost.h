// The cost of the operators of an exported graph.
#pragma once

#include "models/exported/values.h"

namespace trainyard::models::pt2 {

// Sets `forward_flops` and `forward_bytes` of a node, for one sample of a batch.
// - They come from the sizes in the file, divided by `batch`, the number of samples in the author's example.
// - Only operators with many multiply-adds have operations, and only embeddings have bytes.
void count_cost(Node& node, const Values& values, double batch);

}  // namespace trainyard::models::pt2
