#include "models/networks/vector_kernels.h"

namespace trainyard::networks {

TRAINYARD_EACH_PROCESSOR
void add_to(float* __restrict to, const float* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

TRAINYARD_EACH_PROCESSOR
void add_to(double* __restrict to, const double* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace trainyard::networks
