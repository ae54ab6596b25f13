#include "models/networks/vector_kernels.h"

#include <algorithm>

namespace trainyard::networks {

namespace {

// The numbers that are compared before the loop can end early: some cache lines.
constexpr std::int64_t at_once = 256;

// Inlined, so that it is compiled for the processor of each function below.
template <class Number, class Condition>
[[gnu::always_inline]] inline bool any_of(const Number* numbers, std::int64_t count, Condition condition) {
  for (std::int64_t begin = 0; begin < count; begin += at_once) {
    const std::int64_t end = std::min(count, begin + at_once);
    int found = 0;
    for (std::int64_t i = begin; i < end; ++i) found |= condition(numbers[i]) ? 1 : 0;
    if (found) return true;
  }
  return false;
}

template <class Number>
[[gnu::always_inline]] inline bool first_largest(const Number* numbers, std::int64_t count,
                                                 std::int64_t place) {
  const Number largest = numbers[place];
  return !any_of(numbers, place, [largest](Number number) { return number >= largest; }) &&
         !any_of(numbers + place, count - place, [largest](Number number) { return number > largest; });
}

}  // namespace

TRAINYARD_EACH_PROCESSOR
void add_to(float* __restrict to, const float* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

TRAINYARD_EACH_PROCESSOR
void add_to(double* __restrict to, const double* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

TRAINYARD_EACH_PROCESSOR
bool is_first_largest(const float* numbers, std::int64_t count, std::int64_t place) {
  return first_largest(numbers, count, place);
}

TRAINYARD_EACH_PROCESSOR
bool is_first_largest(const double* numbers, std::int64_t count, std::int64_t place) {
  return first_largest(numbers, count, place);
}

}  // namespace trainyard::networks
