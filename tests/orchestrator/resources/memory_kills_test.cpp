// The kernel's count of processes that it killed because memory ran out.
#include "orchestrator/resources/memory_kills.h"

#include <doctest/doctest.h>

using namespace trainyard::orchestrator;

TEST_CASE("the number of kills is in the text of /proc/vmstat if the kernel counts them") {
  CHECK(parse_memory_kills("pgmajfault 12\noom_kill 5\nnuma_hit 7\n") == 5);
  CHECK_FALSE(parse_memory_kills("pgmajfault 12\n"));
  CHECK_FALSE(parse_memory_kills(""));
}
