#include <doctest/doctest.h>
#include <sched.h>

#include "models/error.h"
#include "orchestrator/cpu_topology.h"
#include "orchestrator/devices.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

std::vector<std::string> names(const std::vector<Device>& devices) {
  std::vector<std::string> result;
  for (const auto& device : devices) result.push_back(device.name);
  return result;
}

using Names = std::vector<std::string>;
using Cores = std::vector<int>;

}  // namespace

TEST_CASE("CPU lists are read and written as the kernel writes them") {
  CHECK(parse_cpu_list("0-3,8,10-11\n") == Cores{0, 1, 2, 3, 8, 10, 11});
  CHECK(parse_cpu_list("5") == Cores{5});
  CHECK(parse_cpu_list("").empty());
  CHECK(cpu_list_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
}

TEST_CASE("one hyper-thread of each physical core is used, of those that are allowed") {
  // four cores with two threads each, numbered as on most Intel machines
  const std::vector<Cores> siblings{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  CHECK(one_per_core({0, 1, 2, 3, 4, 5, 6, 7}, siblings) == Cores{0, 1, 2, 3});
  CHECK(one_per_core({1, 4, 5, 7}, siblings) == Cores{1, 4, 7});
  CHECK(one_per_core({0, 1}, {}) == Cores{0, 1});  // the kernel says nothing of siblings
}

TEST_CASE("a cgroup quota is read from both versions") {
  CHECK(quota_of_cpu_max("200000 100000\n") == 2.0);
  CHECK(quota_of_cpu_max("150000 100000\n") == 1.5);
  CHECK_FALSE(quota_of_cpu_max("max 100000\n"));
  CHECK_FALSE(quota_of_cpu_max(""));
  CHECK(quota_of_cfs("50000\n", "100000\n") == 0.5);
  CHECK_FALSE(quota_of_cfs("-1\n", "100000\n"));
}

TEST_CASE("the cgroups of a process are found in /proc/self/cgroup of both versions") {
  CHECK(parse_cgroup_paths("0::/user.slice/user-1000.slice\n").unified == "/user.slice/user-1000.slice");
  const auto paths = parse_cgroup_paths("9:name=systemd:/\n3:cpuset:/a\n2:cpu,cpuacct:/docker/f00\n0::/b\n");
  CHECK(paths.cpu == "/docker/f00");
  CHECK(paths.unified == "/b");
  CHECK_FALSE(parse_cgroup_paths("3:cpuset:/a\n").cpu);
}

TEST_CASE("a quota of two and a half CPUs leaves three cores, a tiny one leaves one") {
  CHECK(limited_by({0, 1, 2, 3}, 2.5) == Cores{0, 1, 2});
  CHECK(limited_by({4, 5}, 0.2) == Cores{4});
  CHECK(limited_by({4, 5}, 64.0) == Cores{4, 5});
  CHECK(limited_by({4, 5}, std::nullopt) == Cores{4, 5});
}

TEST_CASE("usable cores are within the affinity of the process") {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  const auto cores = usable_cores();
  REQUIRE_FALSE(cores.empty());
  for (const int core : cores) CHECK(CPU_ISSET(core, &allowed));
}

TEST_CASE("cores are divided equally; what is left over stays unused") {
  CHECK(names(divide_cores({0, 1, 2, 3, 4}, 2)) == Names{"cpu:0-1", "cpu:2-3"});
  CHECK(names(divide_cores({0, 2, 4, 6}, 4)) == Names{"cpu:0", "cpu:2", "cpu:4", "cpu:6"});
}

TEST_CASE("auto means two devices, or one on a single core") {
  CHECK(divide_cores({0, 1, 2, 3}, std::nullopt).size() == 2);
  CHECK(divide_cores({0}, std::nullopt).size() == 1);
}

TEST_CASE("more devices than cores are refused with the number of cores") {
  CHECK_THROWS_WITH_AS(divide_cores({0, 1}, 3), doctest::Contains("only 2 cores"), UserError);
}

TEST_CASE("rank (replica, stage) sits on device (replica + stage) mod D") {
  const auto devices = divide_cores({0, 1}, 2);
  CHECK(names(place_ranks({.replicas = 1, .stages = 1}, devices)) == Names{"cpu:0"});
  CHECK(names(place_ranks({.replicas = 2, .stages = 1}, devices)) == Names{"cpu:0", "cpu:1"});
  CHECK(names(place_ranks({.replicas = 3, .stages = 1}, devices)) == Names{"cpu:0", "cpu:1", "cpu:0"});
  // rank = replica * stages + stage: (0,0) (0,1) (1,0) (1,1)
  CHECK(names(place_ranks({.replicas = 2, .stages = 2}, devices)) ==
        Names{"cpu:0", "cpu:1", "cpu:1", "cpu:0"});
}

TEST_CASE("each rank has a device of its own where there are enough") {
  const auto four = divide_cores({0, 1, 2, 3}, 4);
  CHECK(names(place_ranks({.replicas = 2, .stages = 2}, four)) == Names{"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
  const auto three = divide_cores({0, 1, 2}, 3);
  CHECK(names(place_ranks({.replicas = 1, .stages = 3}, three)) == Names{"cpu:0", "cpu:1", "cpu:2"});
  CHECK(names(place_ranks({.replicas = 2, .stages = 2}, three)) == Names{"cpu:0", "cpu:1", "cpu:1", "cpu:2"});
}

TEST_CASE("more ranks than the cores can carry are refused with the number that they can") {
  const auto devices = divide_cores({0, 1}, 2);
  CHECK(place_ranks({.name = "wide", .replicas = 16, .stages = 2}, devices).size() == 32);
  CHECK_THROWS_WITH_AS(place_ranks({.name = "wide", .replicas = 11, .stages = 3}, devices),
                       doctest::Contains("\"wide\" has 11 replicas of 3 stages, more ranks than 2 cores"),
                       UserError);
  CHECK_THROWS_AS(place_ranks({.name = "wide", .replicas = 1L << 40, .stages = 1L << 40}, devices),
                  UserError);
}

TEST_CASE(
    "a rank with more threads than the machine has cores is warned of once, ranks that have so together "
    "not") {
  experiments::Experiment experiment;
  experiments::Run run;
  run.strategy = {.name = "wide", .kind = "ddp", .replicas = 4, .stages = 2};
  run.threads = 4;
  auto many = run;
  many.threads = 1024;
  experiment.runs = {run, many, many, experiments::Run{}};
  experiment.strategy_locations.assign(4, Location{"bench.toml", 7, 1});
  const auto problems = thread_problems(experiment, 4);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].warning);
  CHECK(to_text(problems[0]) ==
        "bench.toml:7:1: warning: strategy \"wide\" asks for 1024 threads × 8 ranks on 4 cores: "
        "the threads of one rank alone wait for one another");
  CHECK(thread_problems(experiment, 1024).empty());
}

TEST_CASE("a strategy with more ranks than devices is warned of once, at its place in the file") {
  experiments::Experiment experiment;
  experiments::Run run;
  run.strategy = {.name = "wide", .kind = "ddp", .replicas = 4, .stages = 1};
  experiment.runs = {run, run, experiments::Run{}};
  const Location place{"bench.toml", 7, 1};
  experiment.strategy_locations = {place, place, place};
  const auto problems = device_problems(experiment, divide_cores({0, 1}, 2));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].warning);
  CHECK(problems[0].location.line == 7);
  CHECK(problems[0].message.find("\"wide\" has 4 ranks on 2 devices") != std::string::npos);
}
