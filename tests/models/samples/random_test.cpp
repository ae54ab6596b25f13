#include "models/samples/random.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <doctest/doctest.h>

using trainyard::models::mixed_seed;
using trainyard::models::permutation;
using trainyard::models::SplitMix64;

TEST_CASE("SplitMix64 returns the published numbers for seed 1234567") {
  SplitMix64 random(1234567);  // rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
  for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                       4593380528125082431U, 16408922859458223821U}) {
    CHECK(random.next() == expected);
  }
}

TEST_CASE("random numbers are within their range and evenly distributed") {
  SplitMix64 random(1);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) {
    const double unit = random.unit();
    REQUIRE(unit >= 0);
    REQUIRE(unit < 1);
    ++counts[static_cast<std::size_t>(unit * 10)];
    REQUIRE(random.below(7) < 7);
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 10'000.0) * (count - 10'000.0) / 10'000;
  CHECK(chi_square < 27.88);  // 9 degrees of freedom, 0.1 %
}

TEST_CASE("a permutation has each number once and depends only on its seed") {
  for (const std::int64_t size : {0, 1, 2, 3, 1000}) {
    std::vector<std::int64_t> order = permutation(size, 5);
    CHECK(order == permutation(size, 5));
    if (size == 1000) CHECK(order != permutation(size, 6));
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    CHECK(order == all);
  }
}

TEST_CASE("all orders of three numbers are equally likely") {
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 60'000; ++seed) ++counts[permutation(3, mixed_seed({seed}))];
  REQUIRE(counts.size() == 6);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 10'000.0) * (count - 10'000.0) / 10'000;
  CHECK(chi_square < 20.52);  // 5 degrees of freedom, 0.1 %
}

TEST_CASE("a mixed seed depends on the order and the number of its parts") {
  CHECK(mixed_seed({1, 2}) != mixed_seed({2, 1}));
  CHECK(mixed_seed({0}) != mixed_seed({0, 0}));
}
