// Vectorised loops, compiled for several generations of processors. The right one is selected at program
// start. The results are the same on every processor, because there is no fused multiply-add.
#pragma once

#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TRAINYARD_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TRAINYARD_EACH_PROCESSOR
#endif

namespace trainyard::networks {

// to[i] += from[i]. The arrays must not overlap.
void add_to(float* to, const float* from, std::int64_t count);
void add_to(double* to, const double* from, std::int64_t count);

// Whether the largest of `count` numbers is at index `place`. If several are equal, the first counts. No
// number may be NaN.
bool is_first_largest(const float* numbers, std::int64_t count, std::int64_t place);
bool is_first_largest(const double* numbers, std::int64_t count, std::int64_t place);

}  // namespace trainyard::networks
