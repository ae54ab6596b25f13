// Random numbers that are the same on every machine and with every standard library, for splits and synthetic
// data: the standard's distributions and std::shuffle are not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace trainyard::models {

// SplitMix64: Steele, Lea, Flood, «Fast splittable pseudorandom number generators», OOPSLA 2014.
class SplitMix64 {
 public:
  // Of the algorithm: what is added to the state for each number, and the factors that mix it.
  static constexpr std::uint64_t gamma = 0x9e3779b97f4a7c15U;
  static constexpr std::uint64_t first_factor = 0xbf58476d1ce4e5b9U, second_factor = 0x94d049bb133111ebU;

  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double unit();                            // uniform in [0, 1), 53 bits
  double between(double low, double high);  // uniform in [low, high)
  std::uint64_t below(std::uint64_t end);   // uniform in 0 … end − 1, without bias; end > 0

 private:
  std::uint64_t state_;
};

// A seed of its own for each sequence of numbers: (seed, purpose, index, …).
std::uint64_t mixed_seed(std::initializer_list<std::uint64_t> parts);

// 0 … size − 1 in random order (Fisher-Yates); each order equally likely.
std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t seed);

}  // namespace trainyard::models
