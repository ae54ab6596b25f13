#include "models/samples/random.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace trainyard::models {

std::uint64_t SplitMix64::next() {
  state_ += gamma;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * first_factor;
  z = (z ^ (z >> 27U)) * second_factor;
  return z ^ (z >> 31U);
}

double SplitMix64::unit() {
  return static_cast<double>(next() >> 11U) * 0x1p-53;
}

double SplitMix64::between(double low, double high) {
  return low + (high - low) * unit();
}

std::uint64_t SplitMix64::below(std::uint64_t end) {
  const std::uint64_t unfair = (0 - end) % end;  // 2^64 mod end: draws below it are rejected
  std::uint64_t drawn = next();
  while (drawn < unfair) drawn = next();
  return drawn % end;
}

std::uint64_t mixed_seed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t seed = 0;
  for (const std::uint64_t part : parts) seed = SplitMix64(seed ^ part).next();
  return seed;
}

std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  SplitMix64 random(seed);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace trainyard::models
