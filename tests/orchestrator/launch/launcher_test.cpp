// The table of launchers, and the local launcher.
#include "orchestrator/launch/launcher.h"

#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("each launcher that an experiment file may name can start ranks") {
  const auto rules = experiments::launcher_rules();
  REQUIRE(launchers().size() == rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) CHECK(launchers()[i].name == rules[i].name);
}

TEST_CASE("the local launcher passes each argument on, also one that is not UTF-8") {
  const auto launcher = local_launcher(Programs{});
  for (const std::string argument : {"\xc3\xa9", "\xff"}) {
    const TemporaryFolder folder;
    const auto group =
        launcher->launch({.directory = folder.path,
                          .run_id = "run/1",
                          .token = "",
                          .ranks = {{.argv = {"/bin/sh", "-c", "printf %s \"$1\"; exit 3", "sh", argument},
                                     .environment = {},
                                     .cores = {},
                                     .log = folder.path / "log"}}});
    REQUIRE(becomes_true(tests::patience, [&] { return group->end().has_value(); }));
    CHECK(group->poll(0)->code == 3);
    CHECK_FALSE(group->end()->reason);
    CHECK(text_of(folder.path / "log") == argument);
  }
}
