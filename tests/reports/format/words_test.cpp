#include "reports/format/words.h"

#include <doctest/doctest.h>

namespace trainyard::reports {
namespace {

TEST_CASE("long lists of names are cut to a count") {
  CHECK(some_of({}) == "");
  CHECK(some_of({"A"}) == "A");
  CHECK(some_of({"A", "B", "C", "D"}) == "A, B, C and D");
  CHECK(some_of({"A", "B", "C", "D", "E"}) == "A, B, C and 2 others");
}

}  // namespace
}  // namespace trainyard::reports
