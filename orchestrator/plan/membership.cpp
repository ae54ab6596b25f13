#include "orchestrator/plan/membership.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"
#include "db/queries/queries.h"

namespace trainyard::orchestrator {

using experiments::Membership;

std::optional<Membership> membership_of(const experiments::Strategy& strategy, std::int64_t replicas,
                                        const std::string& why) {
  if (!strategy.min_replicas || replicas >= strategy.replicas) return std::nullopt;
  const std::int64_t members = std::max(replicas, *strategy.min_replicas);
  return Membership{members, fmt::format("{} of {} replicas: {}", members, strategy.replicas, why)};
}

namespace {

// The most devices of an attempt since the run last finished.
std::size_t devices_before(const db::Database& database, const std::string& key) {
  std::size_t most = 0;
  for (const db::Attempt& attempt : db::attempts_of_run(database, key)) {
    const auto devices = attempt.launch.at("devices").get<std::set<std::string>>();
    most = attempt.status == "finished" ? 0 : std::max(most, devices.size());
  }
  return most;
}

}  // namespace

void shrink_to_devices(PlannedRun& run, bool placed_by_launcher, std::optional<std::int64_t> tasks,
                       const db::Database& database) {
  const experiments::Strategy& strategy = run.run.strategy;
  if (!strategy.min_replicas) return;
  if (tasks)
    run.membership = membership_of(strategy, *tasks, "the allocation has " + counted(*tasks, "task"));
  if (!placed_by_launcher) {
    const auto all = static_cast<std::size_t>(strategy.replicas);
    const std::size_t now = distinct_devices(run.devices);
    const std::size_t wanted = run.devices.front().gpu.empty() ? devices_before(database, run.key) : all;
    if (now < wanted)
      run.membership = membership_of(
          strategy, static_cast<std::int64_t>(now),
          fmt::format("there {} {}, not {}", now == 1 ? "is" : "are", counted(now, "device"), wanted));
  }
  if (!run.membership) return;
  run.devices = devices_of_members(run.devices, run.membership->replicas, {});
  run.devices_shared = distinct_devices(run.devices) < run.devices.size();
}

std::optional<std::int64_t> shared_tasks(const experiments::Machine& machine) {
  const bool shares = machine.launcher == "slurm" && machine.allocation != "job";
  const char* tasks = shares ? std::getenv("SLURM_NTASKS") : nullptr;
  return tasks == nullptr ? std::nullopt : parse_number<std::int64_t>(tasks);
}

std::vector<Device> devices_of_members(std::vector<Device> devices, std::int64_t replicas,
                                       const std::vector<std::string>& lost) {
  const auto is_kept = [&](const Device& device) {
    return std::ranges::find(lost, device.name) == lost.end();
  };
  if (distinct_devices(devices) == devices.size())
    std::stable_partition(devices.begin(), devices.end(), is_kept);
  devices.resize(static_cast<std::size_t>(replicas));
  return devices;
}

}  // namespace trainyard::orchestrator
