#include "base/error.h"

#include <doctest/doctest.h>

using trainyard::Location;
using trainyard::to_text;
using trainyard::UserError;

TEST_CASE("a location is printed as compilers do, without the unknown parts") {
  CHECK(to_text(Location{"a.toml", 3, 7}) == "a.toml:3:7");
  CHECK(to_text(Location{"a.toml", 3, 0}) == "a.toml:3");
  CHECK(to_text(Location{"a.toml", 0, 0}) == "a.toml");
  CHECK(to_text(Location{}).empty());
}

TEST_CASE("a user error is one line with the place, the problem and the advice") {
  CHECK(std::string(UserError("no", "mend it", {"a.toml", 3, 7}).what()) == "a.toml:3:7: no; mend it");
  CHECK(std::string(UserError("no", "; mend it").what()) == "no; mend it");
  CHECK(std::string(UserError("no").what()) == "no");
}
