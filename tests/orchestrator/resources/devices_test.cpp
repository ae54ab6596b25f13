#include "orchestrator/resources/devices.h"

#include <doctest/doctest.h>
#include <sched.h>

#include "base/error.h"
#include "base/host.h"
#include "orchestrator/resources/cpu_topology.h"
#include "tests/support/contains.h"
#include "tests/support/user_error.h"

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
  CHECK(trainyard::cpu_list_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
}

TEST_CASE("one allowed hyper-thread of each physical core is used") {
  // Four cores with two threads each, numbered as on most Intel machines.
  const std::vector<Cores> siblings{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  CHECK(one_per_core({0, 1, 2, 3, 4, 5, 6, 7}, siblings) == Cores{0, 1, 2, 3});
  CHECK(one_per_core({1, 4, 5, 7}, siblings) == Cores{1, 4, 7});
  CHECK(one_per_core({0, 1}, {}) == Cores{0, 1});  // the kernel gives no siblings
}

TEST_CASE("a cgroup quota is read from both versions") {
  CHECK(cpu_quota("200000 100000\n") == 2.0);
  CHECK(cpu_quota("150000 100000\n") == 1.5);
  CHECK_FALSE(cpu_quota("max 100000\n"));
  CHECK_FALSE(cpu_quota(""));
  CHECK(cpu_quota("50000\n100000\n") == 0.5);
  CHECK_FALSE(cpu_quota("-1\n100000\n"));
}

TEST_CASE("a quota of two and a half CPUs leaves three cores, and a tiny quota leaves one") {
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

TEST_CASE("cores are divided equally, and cores left over stay unused") {
  CHECK(names(divide_cores({0, 1, 2, 3, 4}, 2)) == Names{"cpu:0-1", "cpu:2-3"});
  CHECK(names(divide_cores({0, 2, 4, 6}, 4)) == Names{"cpu:0", "cpu:2", "cpu:4", "cpu:6"});
}

TEST_CASE("auto means two devices, or one on a single core") {
  CHECK(divide_cores({0, 1, 2, 3}, std::nullopt).size() == 2);
  CHECK(divide_cores({0}, std::nullopt).size() == 1);
}

TEST_CASE("the error for more devices than cores has the number of cores") {
  CHECK_THROWS_WITH_AS(divide_cores({0, 1}, 3), doctest::Contains("only 2 cores"), UserError);
}

TEST_CASE("rank (replica, stage) is on device (replica + stage) mod D") {
  const auto devices = divide_cores({0, 1}, 2);
  CHECK(names(place_ranks({.replicas = 1, .stages = 1}, devices)) == Names{"cpu:0"});
  CHECK(names(place_ranks({.replicas = 2, .stages = 1}, devices)) == Names{"cpu:0", "cpu:1"});
  CHECK(names(place_ranks({.replicas = 3, .stages = 1}, devices)) == Names{"cpu:0", "cpu:1", "cpu:0"});
  // servers follow the replicas
  CHECK(names(place_ranks({.replicas = 2, .stages = 1, .servers = 2}, devices)) ==
        Names{"cpu:0", "cpu:1", "cpu:0", "cpu:1"});
  // rank = replica * stages + stage: (0,0) (0,1) (1,0) (1,1)
  CHECK(names(place_ranks({.replicas = 2, .stages = 2}, devices)) ==
        Names{"cpu:0", "cpu:1", "cpu:1", "cpu:0"});
  // rank = (replica * stages + stage) * tensor + part
  CHECK(names(place_ranks({.replicas = 2, .stages = 1, .tensor = 2}, devices)) ==
        Names{"cpu:0", "cpu:1", "cpu:1", "cpu:0"});
  CHECK(names(place_ranks({.replicas = 1, .stages = 1, .tensor = 3}, devices)) ==
        Names{"cpu:0", "cpu:1", "cpu:1"});
  // Eight ranks: two on each of four devices.
  CHECK(names(place_ranks({.replicas = 2, .stages = 2, .tensor = 2}, divide_cores({0, 1, 2, 3}, 4))) ==
        Names{"cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:1", "cpu:2", "cpu:3", "cpu:0"});
}

TEST_CASE("each rank has its own device if there are enough devices") {
  const auto four = divide_cores({0, 1, 2, 3}, 4);
  CHECK(names(place_ranks({.replicas = 2, .stages = 2}, four)) == Names{"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
  const auto three = divide_cores({0, 1, 2}, 3);
  CHECK(names(place_ranks({.replicas = 1, .stages = 3}, three)) == Names{"cpu:0", "cpu:1", "cpu:2"});
  CHECK(names(place_ranks({.replicas = 2, .stages = 2}, three)) == Names{"cpu:0", "cpu:1", "cpu:1", "cpu:2"});
}

TEST_CASE("the error for too many ranks has the number of cores") {
  const auto devices = divide_cores({0, 1}, 2);
  CHECK(place_ranks({.name = "wide", .replicas = 16, .stages = 2}, devices).size() == 32);
  CHECK_THROWS_WITH_AS(place_ranks({.name = "wide", .replicas = 11, .stages = 3}, devices),
                       doctest::Contains("\"wide\" has 11 replicas of 3 stages, more ranks than 2 cores"),
                       UserError);
  CHECK_THROWS_AS(place_ranks({.name = "wide", .replicas = 1L << 40, .stages = 1L << 40}, devices),
                  UserError);
}

namespace {

experiments::Run with_threads(std::int64_t threads, std::int64_t replicas, std::int64_t stages = 1) {
  experiments::Run run;
  run.strategy = {.name = "wide", .kind = "ddp", .replicas = replicas, .stages = stages};
  run.threads = threads;
  return run;
}

Names placed(const experiments::Run& run, const Cores& cores, std::optional<int> wanted = std::nullopt) {
  return names(place_ranks(run.strategy, devices_for(run, core_devices(cores), wanted)));
}

}  // namespace

TEST_CASE("a rank has one core per thread, whatever the number of devices of the machine") {
  CHECK(placed(with_threads(2, 1), {0, 1}) == Names{"cpu:0-1"});
  CHECK(placed(with_threads(1, 1), {0, 1}) == Names{"cpu:0"});
  CHECK(placed(with_threads(2, 1), {0, 1}, 2) == Names{"cpu:0-1"});
  CHECK(placed(with_threads(3, 1), {0, 2, 4, 6}) == Names{"cpu:0,2,4"});
  CHECK(placed(with_threads(2, 2), {0, 1, 2, 3}) == Names{"cpu:0-1", "cpu:2-3"});
  CHECK(placed(with_threads(1, 4), {0, 1, 2, 3}) == Names{"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
}

TEST_CASE(
    "ranks share groups of cores evenly if the host has cores for one rank's threads, but not for all") {
  CHECK(placed(with_threads(2, 2), {0, 1}) == Names{"cpu:0-1", "cpu:0-1"});
  CHECK(placed(with_threads(2, 2, 2), {0, 1, 2, 3, 4}) == Names{"cpu:0-1", "cpu:2-3", "cpu:2-3", "cpu:0-1"});
  CHECK(placed(with_threads(1, 2), {0, 1}, 1) == Names{"cpu:0", "cpu:0"});  // `devices = 1`
}

TEST_CASE("without `threads` the cores are divided equally into as many parts as [machine] devices") {
  experiments::Run run;
  run.strategy = {.name = "ddp", .kind = "ddp", .replicas = 2, .stages = 1};
  CHECK(placed(run, {0, 1, 2, 3}) == Names{"cpu:0-1", "cpu:2-3"});
  CHECK(placed(run, {0, 1, 2, 3}, 1) == Names{"cpu:0-3", "cpu:0-3"});
}

TEST_CASE("a run leases each of its cores or GPUs once") {
  CHECK(leased_devices({}) == 0);
  CHECK(leased_devices(grouped(core_devices({0, 1}), 2)) == 2);
  CHECK(leased_devices({{"cuda:0", {0, 1}, "H200"}, {"cuda:0", {2, 3}, "H200"}}) == 1);
  CHECK(leased_devices({{"slurm", {}}, {"slurm", {}}}) == 1);
}

TEST_CASE("ranks on GPUs use more cores of the host if their part is too small for their threads") {
  const std::vector<Device> host{{"cuda:0", {0}, "H200"}, {"cuda:1", {1}, "H200"}};
  std::vector<Device> alone{host[0]};
  CHECK_FALSE(widen_to_threads(alone, host, 2));
  CHECK(alone[0].cores == Cores{0, 1});
  std::vector<Device> both = host;
  CHECK(widen_to_threads(both, host, 2));  // they share both cores
  CHECK(both[1].cores == Cores{0, 1});
  std::vector<Device> narrow = host;
  CHECK_FALSE(widen_to_threads(narrow, host, 1));
  CHECK(narrow[1].cores == Cores{1});
}

TEST_CASE("more threads per rank than cores are an error with its place in the file and two remedies") {
  experiments::Experiment experiment;
  experiment.runs = {with_threads(2, 4), with_threads(3, 1), with_threads(1024, 1), with_threads(3, 1)};
  for (const int column : {12, 15, 18, 21})
    experiment.thread_locations.push_back(Location{"bench.toml", 7, column});
  const auto refusal = [&](std::size_t cores) {
    return tests::user_error_of([&] { check_threads(experiment, cores); });
  };
  CHECK(refusal(1024).empty());
  const std::string here = refusal(2);
  CHECK(here.starts_with("bench.toml:7:18: "));
  CHECK(contains(here, "threads = 1024, but this process may use only 2 cores"));
  CHECK(contains(here, "lower threads to at most 2, or train with more cores"));
  experiment.machine.launcher = "slurm";
  CHECK(contains(refusal(2), "lower threads to at most 2, or raise cpus_per_task to 1024"));
}

TEST_CASE("a strategy with more ranks than devices gives one warning with its place in the file") {
  experiments::Experiment experiment;
  experiments::Run run;
  run.strategy = {.name = "wide", .kind = "ddp", .replicas = 4, .stages = 1};
  experiment.runs = {run, run, experiments::Run{}};
  const Location place{"bench.toml", 7, 1};
  experiment.strategy_locations = {place, place, place};
  const auto problems = device_problems(experiment, core_devices({0, 1}));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].warning);
  CHECK(problems[0].location.line == 7);
  CHECK(contains(problems[0].message, "\"wide\" has 4 ranks on 2 devices:"));
  experiment.runs = {with_threads(2, 2)};
  CHECK(contains(device_problems(experiment, core_devices({0, 1, 2})).at(0).message,
                 "\"wide\" has 2 ranks on 1 device of 2 cores: its ranks share devices"));
  CHECK(device_problems(experiment, core_devices({0, 1, 2, 3})).empty());
}
