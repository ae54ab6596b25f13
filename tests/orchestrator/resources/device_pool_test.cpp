// Which run starts when, and on which devices.
#include "orchestrator/resources/device_pool.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "base/error.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

using Devices = DevicePool::Devices;

TEST_CASE("a run gets all of its devices or none") {
  DevicePool pool(4);
  CHECK(pool.grant({{1, 3}})->devices == Devices{0, 1, 2});
  CHECK_FALSE(pool.grant({{2, 2}}));
  CHECK(pool.free() == 1);
  pool.release(1);
  CHECK(pool.grant({{2, 2}})->devices == Devices{0, 1});
}

TEST_CASE("a small run starts beside a large one that waits, if it does not delay that one") {
  DevicePool pool(4);
  REQUIRE(pool.grant({{1, 3}}));  // devices 0 to 2; device 3 is free
  // Run 2 will start on two of the devices of run 1, so device 3 is idle.
  const auto beside = pool.grant({{2, 2}, {3, 1}});
  REQUIRE(beside);
  CHECK(beside->run == 3);
  CHECK(beside->devices == Devices{3});
}

TEST_CASE("a small run does not take devices that a waiting large run needs") {
  DevicePool pool(4);
  REQUIRE(pool.grant({{1, 2}}));
  CHECK_FALSE(pool.grant({{2, 4}, {3, 1}, {4, 1}}));  // both free devices are reserved for run 2
  pool.release(1);
  CHECK(pool.grant({{2, 4}, {3, 1}})->run == 2);
}

TEST_CASE("devices that another sweep has are used when they are put back") {
  DevicePool pool(2);
  pool.withhold(0);
  CHECK(pool.free() == 1);
  CHECK_FALSE(pool.grant({{1, 2}}));
  pool.put_back(0);
  CHECK(pool.grant({{1, 2}})->devices == Devices{0, 1});
  CHECK_THROWS_AS(pool.withhold(0), InternalError);
  pool.release(1);
  pool.withhold(0);
  CHECK(pool.grant({{2, 1}})->devices == Devices{1});
  CHECK_THROWS_AS(pool.put_back(2), InternalError);
}

TEST_CASE("a run that can never be placed, and the release of a run without devices, are internal errors") {
  DevicePool pool(2);
  CHECK_THROWS_AS(pool.grant({{1, 3}}), InternalError);
  CHECK_THROWS_AS(pool.release(7), InternalError);
}

namespace {

struct Job {
  std::size_t devices = 1;
  double seconds = 1;
  double starts = -1;
};

struct Running {
  std::size_t job = 0;
  double ends = 0;
};

// Runs the jobs to their end in simulated time. Checks that no device is held twice.
double simulate(std::vector<Job>& jobs, std::size_t devices) {
  DevicePool pool(devices);
  std::vector<std::size_t> waiting(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) waiting[i] = i;
  std::vector<Running> running;
  std::vector<int> holders(devices, 0);
  std::vector<Devices> held(jobs.size());
  double now = 0;
  std::size_t head = jobs.size();
  double head_may_wait_until = 0;
  while (!waiting.empty() || !running.empty()) {
    while (true) {
      std::vector<DevicePool::Request> requests;
      for (const std::size_t job : waiting) requests.push_back({job, jobs[job].devices});
      const auto grant = pool.grant(requests);
      if (!grant) break;
      std::erase(waiting, grant->run);
      jobs[grant->run].starts = now;
      held[grant->run] = grant->devices;
      CHECK(grant->devices.size() == jobs[grant->run].devices);
      for (const std::size_t device : grant->devices) CHECK(++holders[device] == 1);
      running.push_back({grant->run, now + jobs[grant->run].seconds});
      if (grant->run == head) CHECK(now <= head_may_wait_until);
    }
    // The first job in line may wait for jobs that started before it became first, and for no later one.
    if (!waiting.empty() && waiting.front() != head) {
      head = waiting.front();
      head_may_wait_until = now;
      for (const Running& each : running) head_may_wait_until = std::max(head_may_wait_until, each.ends);
    }
    const auto next = std::min_element(running.begin(), running.end(),
                                       [](const Running& a, const Running& b) { return a.ends < b.ends; });
    now = next->ends;
    pool.release(next->job);
    for (const std::size_t device : held[next->job]) --holders[device];
    running.erase(next);
  }
  return now;
}

}  // namespace

TEST_CASE("the first run in line waits only for runs that started before, whatever comes after it") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t devices = 1 + random() % 8;
    std::vector<Job> jobs(40);
    for (Job& job : jobs) {
      job.devices = 1 + random() % devices;
      job.seconds = 1 + static_cast<double>(random() % 1000) / 10;
    }
    simulate(jobs, devices);
    CHECK(std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.starts >= 0; }));
  }
}

TEST_CASE("two large runs and many small ones take less time than one after another") {
  std::vector<Job> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back({3, 10, -1});
    jobs.push_back({1, 10, -1});
  }
  CHECK(simulate(jobs, 4) == doctest::Approx(40));  // 3 + 1 devices are always busy
}
