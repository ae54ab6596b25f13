// Membership of the next attempt of an elastic run (`min_replicas`): fewer replicas than the run has, and why.
//
// - A retry after a lost rank has one replica fewer than the attempt before. A later sweep has all again.
// - Replicas never share a GPU. On cores, they share devices only if no unfinished attempt had more devices.
//   Else each device gets one replica.
// - In a shared Slurm allocation each task gets one replica.
// - An attempt never has fewer than `min_replicas`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "experiments/protocol/launch.h"
#include "orchestrator/plan/plan.h"

namespace trainyard::orchestrator {

// Empty if the run is not elastic, or if `replicas` are enough for all.
std::optional<experiments::Membership> membership_of(const experiments::Strategy& strategy,
                                                     std::int64_t replicas, const std::string& why);

// Gives a run that waits its membership, and only the devices of these replicas.
// - `tasks`: of the shared Slurm allocation; empty: ranks run on devices of this host, or in jobs of their own
void shrink_to_devices(PlannedRun& run, bool placed_by_launcher, std::optional<std::int64_t> tasks,
                       const db::Database& database);

// Tasks of the allocation that [machine] shares. Empty if it shares none, or if Slurm does not say.
std::optional<std::int64_t> shared_tasks(const experiments::Machine& machine);

// Devices of `replicas` ranks. If each rank has its own device, those of lost ranks are used last.
std::vector<Device> devices_of_members(std::vector<Device> devices, std::int64_t replicas,
                                       const std::vector<std::string>& lost);

}  // namespace trainyard::orchestrator
