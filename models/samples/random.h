// Random numbers that are the same on every machine, for splits and synthetic data.
// The distributions of the standard library and std::shuffle differ from one library to another.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace trainyard::models {

// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class SplitMix64 {
 public:
  // Constants of the algorithm: `gamma` is added to the state for each number, the factors mix it.
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

// A seed made from several numbers, such as (seed, purpose, index), so that each sequence has its own.
std::uint64_t mixed_seed(std::initializer_list<std::uint64_t> parts);

// 0 … size − 1 in random order (Fisher-Yates). All orders are equally likely.
std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t seed);

}  // namespace trainyard::models
