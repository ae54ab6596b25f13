// Loops over numbers in memory that are compiled for several generations of processors; the one that fits is
// taken when the program starts. The same results on all: no fused multiply-add.
#pragma once

#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TRAINYARD_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TRAINYARD_EACH_PROCESSOR
#endif

namespace trainyard::networks {

// to[i] += from[i]; the two do not overlap.
void add_to(float* to, const float* from, std::int64_t count);
void add_to(double* to, const double* from, std::int64_t count);

// Whether the first of the largest of `count` numbers is at `place`; none of them is NaN.
bool is_first_largest(const float* numbers, std::int64_t count, std::int64_t place);
bool is_first_largest(const double* numbers, std::int64_t count, std::int64_t place);

}  // namespace trainyard::networks
