#include "base/parameter.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"

using namespace trainyard;

namespace {

Parameter made(ValueType type, std::optional<Bound> minimum = {}, std::optional<Bound> maximum = {}) {
  Parameter parameter;
  parameter.name = "x";
  parameter.type = type;
  parameter.minimum = minimum;
  parameter.maximum = maximum;
  return parameter;
}

Value integer(std::int64_t number) {
  return number;
}
Value text(const char* characters) {
  return std::string(characters);
}

}  // namespace

TEST_CASE("a value is printed as TOML") {
  CHECK(to_text(true) == "true");
  CHECK(to_text(integer(-3)) == "-3");
  CHECK(to_text(0.05) == "0.05");
  CHECK(to_text(1.0) == "1.0");
  CHECK(to_text(-0.0) == "-0.0");
  CHECK(to_text(1e-4) == "1e-4");
  CHECK(to_text(1e300) == "1e300");
  CHECK(to_text(0.1 + 0.2) == "0.30000000000000004");
  CHECK(to_text(text("a \"b\"\\\n\x01")) == R"("a \"b\"\\\n\u0001")");
  CHECK(to_text(std::vector<std::int64_t>{250, 100}) == "[250, 100]");
  CHECK(to_text(std::vector<double>{1, 0.5}) == "[1.0, 0.5]");
  CHECK(to_text(std::vector<double>{}) == "[]");
}

TEST_CASE("every double that is printed reads back as the same double") {
  for (const double number : {1.0 / 3, 5e-324, std::numeric_limits<double>::max(), 123456789012345678.0,
                              -1e22, std::nextafter(1.0, 2.0), 4503599627370496.5}) {
    const std::string written = to_text(number);
    CAPTURE(written);
    CHECK(std::strtod(written.c_str(), nullptr) == number);
    CHECK(written.find_first_of(".e") != std::string::npos);  // TOML reads it as a float
  }
}

TEST_CASE("the allowed values are described in words") {
  CHECK(allowed_text(made(ValueType::boolean)) == "true or false");
  CHECK(allowed_text(made(ValueType::integer, Bound{1})) == "an integer >= 1");
  CHECK(allowed_text(made(ValueType::number, Bound{0, false})) == "a number > 0");
  CHECK(allowed_text(made(ValueType::number, Bound{0}, Bound{1, false})) == "a number in [0, 1)");
  CHECK(allowed_text(made(ValueType::number, {}, Bound{0.5})) == "a number <= 0.5");
  CHECK(allowed_text(made(ValueType::integers, Bound{1})) == "a list of integers >= 1");
  Parameter list = made(ValueType::numbers, Bound{0}, Bound{1});
  list.minimum_length = list.maximum_length = 3;
  CHECK(allowed_text(list) == "a list of 3 numbers in [0, 1]");
  list.minimum_length = 1;
  CHECK(allowed_text(list) == "a list of 1 to 3 numbers in [0, 1]");
  list.minimum_length.reset();
  CHECK(allowed_text(list) == "a list of at most 3 numbers in [0, 1]");
  Parameter choice = made(ValueType::text);
  CHECK(allowed_text(choice) == "a text");
  choice.choices = {"sgd", "adam"};
  CHECK(allowed_text(choice) == "one of \"sgd\", \"adam\"");
}

TEST_CASE("a bound is exact, whether it is included or not") {
  const Parameter half_open = made(ValueType::number, Bound{0}, Bound{1, false});
  CHECK_FALSE(problem_with(half_open, 0.0));
  CHECK_FALSE(problem_with(half_open, integer(0)));
  CHECK_FALSE(problem_with(half_open, std::nextafter(1.0, 0.0)));
  CHECK(problem_with(half_open, 1.0) == "must be a number in [0, 1), but is 1.0");
  CHECK(problem_with(half_open, -5e-324));
  const Parameter open = made(ValueType::number, Bound{0, false});
  CHECK(problem_with(open, 0.0) == "must be a number > 0, but is 0.0");
  CHECK_FALSE(problem_with(open, 5e-324));
  const Parameter large = made(ValueType::integer, {}, Bound{9007199254740992.0});  // 2^53
  CHECK_FALSE(problem_with(large, integer(9007199254740992)));
  CHECK(problem_with(large, integer(9007199254740993)));
}

TEST_CASE("NaN and infinities are never allowed") {
  for (const double number : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    CHECK(problem_with(made(ValueType::number), number));
    CHECK(problem_with(made(ValueType::numbers), std::vector<double>{1, number}));
  }
  CHECK(problem_with(made(ValueType::number), std::nan("")) == "must be a number, but is nan");
}

TEST_CASE("a value of another type is wrong, except an integer for a number") {
  CHECK(problem_with(made(ValueType::integer), 3.0) == "must be an integer, but is 3.0");
  CHECK(problem_with(made(ValueType::integer), true) == "must be an integer, but is true");
  CHECK(problem_with(made(ValueType::boolean), integer(1)));
  CHECK(problem_with(made(ValueType::number), text("3")) == "must be a number, but is \"3\"");
  CHECK(problem_with(made(ValueType::integers), integer(3)) == "must be a list of integers, but is 3");
  CHECK(problem_with(made(ValueType::integers), std::vector<double>{1.5}));
  CHECK_FALSE(problem_with(made(ValueType::numbers), std::vector<std::int64_t>{1, 2}));
  CHECK(coerced(made(ValueType::number), integer(3)) == Value(3.0));
  CHECK(coerced(made(ValueType::numbers), std::vector<std::int64_t>{1, 2}) ==
        Value(std::vector<double>{1, 2}));
  CHECK(coerced(made(ValueType::integer), integer(3)) == integer(3));
  CHECK_THROWS_AS(coerced(made(ValueType::integer), 3.5), trainyard::InternalError);
}

TEST_CASE("a list is checked by its length and by each element, and an empty list has no type") {
  Parameter list = made(ValueType::integers, Bound{1}, Bound{64});
  list.minimum_length = list.maximum_length = 2;
  CHECK_FALSE(problem_with(list, std::vector<std::int64_t>{1, 64}));
  CHECK(problem_with(list, std::vector<std::int64_t>{0, 64}) ==
        "must be a list of 2 integers in [1, 64], but is [0, 64]");
  CHECK(problem_with(list, std::vector<std::int64_t>{1, 65}));
  CHECK(problem_with(list, std::vector<std::int64_t>{1}));
  CHECK(problem_with(list, std::vector<std::int64_t>{1, 2, 3}));
  CHECK(problem_with(list, std::vector<double>{}));
  list.minimum_length = 0;
  CHECK_FALSE(problem_with(list, std::vector<double>{}));
  CHECK(coerced(list, std::vector<double>{}) == Value(std::vector<std::int64_t>{}));
}

TEST_CASE("a text must be one of the choices") {
  Parameter choice = made(ValueType::text);
  CHECK_FALSE(problem_with(choice, text("anything")));
  choice.choices = {"sgd", "adam"};
  CHECK_FALSE(problem_with(choice, text("adam")));
  CHECK(problem_with(choice, text("Adam")) == "must be one of \"sgd\", \"adam\", but is \"Adam\"");
}

TEST_CASE("the default is a value, or words if it depends on other keys") {
  Parameter parameter = made(ValueType::number);
  parameter.fallback_text = "0.05, adam 0.001";
  CHECK(default_text(parameter) == "0.05, adam 0.001");
  parameter.fallback = 0.9;
  CHECK(default_text(parameter) == "0.9");
}
