// The addresses of the hosts of a job, read from files that appear later and from a file system that stops.
#include "orchestrator/rank/job_hosts.h"

#include <atomic>
#include <future>

#include <doctest/doctest.h>

using namespace trainyard::orchestrator;

namespace {

using Clock = std::chrono::steady_clock;

bool contains_soon(JobHosts& hosts, const std::string& address) {
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (Clock::now() < deadline && !hosts.contain(address))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return hosts.contain(address);
}

}  // namespace

TEST_CASE("the hosts of a job are those in the files of its ranks, also of files that appear later") {
  std::atomic<bool> second_is_there = false;
  std::atomic<int> readings = 0;
  JobHosts hosts(2, [&](const std::set<int>& ranks) {
    ++readings;
    JobHosts::Addresses found;
    if (ranks.contains(0)) found[0] = {"a", "10.0.0.1"};
    if (ranks.contains(1) && second_is_there) found[1] = {"10.0.0.2"};
    return found;
  });
  CHECK(contains_soon(hosts, "10.0.0.1"));
  CHECK_FALSE(hosts.contain("10.0.0.2"));
  second_is_there = true;
  CHECK(contains_soon(hosts, "10.0.0.2"));
  CHECK(hosts.contain("a"));
  const int before = readings;
  CHECK_FALSE(hosts.contain("10.0.0.3"));  // all files are known
  CHECK(readings == before);
}

TEST_CASE("a file system that does not answer keeps only one caller waiting") {
  std::promise<void> begun, answer;
  const auto answered = answer.get_future().share();
  JobHosts hosts(1, [&](const std::set<int>&) {
    begun.set_value();
    answered.wait();
    return JobHosts::Addresses{{0, {"10.0.0.1"}}};
  });
  auto first = std::async(std::launch::async, [&] { return hosts.contain("10.0.0.1"); });
  begun.get_future().wait();
  CHECK_FALSE(hosts.contain("10.0.0.1"));  // returns although the reading has not
  answer.set_value();
  CHECK(first.get());
  CHECK(contains_soon(hosts, "10.0.0.1"));
}
