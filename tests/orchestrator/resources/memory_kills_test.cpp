#include "orchestrator/resources/memory_kills.h"

#include <doctest/doctest.h>

#include "tests/support/scratch_folder.h"

using namespace trainyard::orchestrator;
using namespace trainyard::tests;

TEST_CASE("the kernel's count of processes killed for memory is found in both versions of cgroups") {
  CHECK(parse_oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n") == 2);
  CHECK(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n") == 5);
  CHECK_FALSE(parse_oom_kills("low 0\n"));
  CHECK_FALSE(parse_oom_kills(""));
  const ScratchFolder mount;
  write_text(mount / "user/job/memory.events", "oom_kill 0\n");
  write_text(mount / "memory/job/memory.oom_control", "oom_kill 0\n");
  CHECK(oom_kills_file("0::/user/job\n", mount.path()) == mount / "user/job/memory.events");
  CHECK(oom_kills_file("9:cpu,cpuacct:/x\n4:memory:/job\n0::/\n", mount.path()) ==
        mount / "memory/job/memory.oom_control");
  CHECK(oom_kills_file("0::/elsewhere\n", mount.path()).empty());
  write_text(mount / "memory.events", "oom_kill 7\n");
  CHECK(oom_kills_file("0::/elsewhere\n", mount.path()) == mount / "memory.events");
}

TEST_CASE("only a kill while it is watched counts") {
  const ScratchFolder folder;
  write_text(folder / "memory.events", "oom_kill 4\n");
  const MemoryKills kills(folder / "memory.events"), unknown(folder / "none");
  CHECK_FALSE(kills.happened());
  write_text(folder / "memory.events", "oom_kill 5\n");
  CHECK(kills.happened());
  CHECK_FALSE(unknown.happened());
}
