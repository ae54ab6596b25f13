// The hardware of this host, against what the kernel and the distribution say.
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sched.h>

#include "base/host.h"
#include "tests/support/contains.h"

namespace trainyard {

TEST_CASE("cores, memory and system are those of the kernel and of the distribution") {
  const Hardware found = hardware();
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  CHECK(found.cores >= CPU_COUNT(&allowed));
  std::ifstream meminfo("/proc/meminfo");  // "MemTotal:       24635896 kB"
  std::string name;
  std::int64_t kibibytes = 0;
  meminfo >> name >> kibibytes;
  CHECK(found.memory_bytes / 1024 == kibibytes);
  std::string release;
  std::ifstream("/proc/sys/kernel/osrelease") >> release;
  REQUIRE_FALSE(release.empty());
  CHECK(found.system.ends_with("Linux " + release));
  CHECK_FALSE(contains(found.system, "\""));
}

}  // namespace trainyard
