// The table of launchers.
#include "orchestrator/launch/launcher.h"

#include <doctest/doctest.h>

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("each launcher that an experiment file may name can start ranks") {
  const auto rules = experiments::launcher_rules();
  REQUIRE(launchers().size() == rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) CHECK(launchers()[i].name == rules[i].name);
}
