#include "base/named_row.h"

#include <array>

#include <doctest/doctest.h>

using namespace trainyard;

namespace {

struct Fruit {
  const char* name;
  int stones;
};

constexpr std::array fruits{Fruit{"", 0}, Fruit{"cherry", 1}, Fruit{"apple", 0}};

const Fruit& fruit_named(const std::string& name) {
  return named_row(fruits, &Fruit::name, "fruit", name);
}

}  // namespace

TEST_CASE("a row is found by its name, even by an empty name") {
  CHECK(&fruit_named("cherry") == &fruits[1]);
  CHECK(&fruit_named("") == &fruits[0]);
  CHECK(row_or_null(fruits, &Fruit::name, "apple") == &fruits[2]);
  CHECK(row_or_null(fruits, &Fruit::name, "appl") == nullptr);
}

TEST_CASE("an unknown name is a user error with the nearest name, or with all names if none is near") {
  CHECK_THROWS_WITH_AS(fruit_named("chery"), "there is no fruit \"chery\"; did you mean \"cherry\"?",
                       UserError);
  CHECK_THROWS_WITH_AS(fruit_named("plum"), "there is no fruit \"plum\"; choose from cherry, apple",
                       UserError);
}
