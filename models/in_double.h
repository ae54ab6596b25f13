#pragma once

#include "models/graph.h"

namespace trainyard::models {

// The graph with float64 wherever it has float32: tensors, and types that nodes name. In float32 a right gradient can be 3 %
// off, because one activation near 0 changes its sign.
Graph in_double(Graph graph);

}  // namespace trainyard::models
