// Axes, numbers and text widths.
#include "reports/draw/scale.h"

#include <cmath>

#include <doctest/doctest.h>

#include "reports/format/number_text.h"

namespace trainyard::reports {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& all) {
  std::vector<std::string> result;
  result.reserve(all.size());
  for (const Tick& tick : all) result.push_back(tick.label);
  return result;
}

using Labels = std::vector<std::string>;

TEST_CASE("ticks are at round values within the axis") {
  CHECK(labels(ticks(0, 100, 5, false)) == Labels{"0", "20", "40", "60", "80", "100"});
  CHECK(labels(ticks(96.4, 97.6, 4, false)) == Labels{"96.5", "97.0", "97.5"});
  CHECK(labels(ticks(-0.3, 0.3, 3, false)) == Labels{"−0.2", "0.0", "0.2"});
}

TEST_CASE("ticks of a logarithmic axis are decades, and finer for a short range") {
  CHECK(labels(ticks(0.001, 10, 5, true)) == Labels{"0.001", "0.01", "0.1", "1", "10"});
  CHECK(labels(ticks(0.09, 2, 5, true)) == Labels{"0.1", "0.3", "1"});
  CHECK(labels(ticks(0.21, 0.24, 4, true)) == Labels{"0.21", "0.22", "0.23", "0.24"});
  CHECK(labels(ticks(0.24, 1.8, 5, true)) == Labels{"0.3", "0.5", "0.7", "1", "1.5"});
}

TEST_CASE("ticks of epochs are integers and include both ends") {
  CHECK(labels(integer_ticks(1, 5, 5)) == Labels{"1", "2", "3", "4", "5"});
  CHECK(labels(integer_ticks(1, 30, 5)) == Labels{"1", "10", "20", "30"});
  CHECK(labels(integer_ticks(1, 10, 5)) == Labels{"1", "4", "6", "8", "10"});
  CHECK(labels(integer_ticks(1, 1, 5)) == Labels{"1"});
  CHECK(labels(integer_ticks(1, 2, 5)) == Labels{"1", "2"});
}

TEST_CASE("the middle of a logarithmic scale is its geometric mean") {
  const Scale1D scale{0.1, 10, 0, 100, true};
  CHECK(scale(1) == doctest::Approx(50));
  CHECK(scale(100) == 100);
  CHECK(scale(0.001) == 0);
}

TEST_CASE("numbers are short, exact and use a proper minus sign") {
  CHECK(plain_number(0.1) == "0.1");
  CHECK(plain_number(1.0 / 3) == "0.333333");
  CHECK(plain_number(-12.5) == "-12.5");
  CHECK(coordinate(12.3456) == "12.3");
  CHECK(coordinate(-0.001) == "0");
  CHECK(signed_fixed(0.04, 1) == "0.0");
  CHECK(signed_fixed(-0.04, 1) == "0.0");
  CHECK(signed_fixed(-0.5, 1) == "−0.5");
  CHECK(signed_fixed(0.5, 1) == "+0.5");
  CHECK(for_table(1370.6) == "1371");
  CHECK(for_table(0.24799) == "0.2480");
  CHECK(for_table(std::nan("")) == "–");
}

TEST_CASE("text widths are measured in DejaVu Sans") {
  // Advance widths in the font's table: "0" 1303, "." 651, "−" 1716, with 2048 units per em.
  CHECK(text_width("0.0", 2048) == 1303 + 651 + 1303);
  CHECK(text_width("−0", 2048) == 1716 + 1303);
}

}  // namespace
}  // namespace trainyard::reports
