// The strategies as a table: which dimensions of the mesh each may use. What a rank does follows from mesh
// and schedule alone, so trainer and training loop are the same for all.
#pragma once

#include <cstddef>
#include <string_view>

#include "experiments/run/run.h"
#include "runner/trainer/mesh.h"

namespace trainyard::runner {

struct Strategy {
  const char* kind;
  bool replicas;  // may have several
  bool stages;
  bool connected = true;  // else each rank trains by itself
};

// UserError for an unknown kind, with those that exist.
const Strategy& find_strategy(std::string_view kind);

// The mesh of `strategy`. UserError where it does not have `world_size` ranks or not the dimensions of its
// kind.
Mesh mesh_of(const experiments::Strategy& strategy, int world_size);

// Layers [first, last) of a chain.
struct StageLayers {
  std::size_t first = 0;
  std::size_t last = 0;
  bool operator==(const StageLayers&) const = default;
};

// Those of `stage` in a chain of `layers`. UserError where there are more stages than layers or the
// boundaries do not cut the chain into them.
StageLayers layers_of_stage(const experiments::Strategy& strategy, int stage, std::size_t layers);

}  // namespace trainyard::runner
