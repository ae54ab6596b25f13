#include "orchestrator/resources/device_pool.h"

#include <algorithm>

#include "base/error.h"

namespace trainyard::orchestrator {

DevicePool::DevicePool(std::size_t devices) : all_(devices) {
  for (std::size_t place = 0; place < devices; ++place) free_.insert(place);
}

std::optional<DevicePool::Grant> DevicePool::grant(const std::vector<Request>& waiting) {
  if (waiting.empty()) return std::nullopt;
  for (const Request& request : waiting)
    if (request.devices > all_) throw InternalError("a run needs more devices than there are");
  if (waiting.front().devices <= free_.size()) {
    reservation_.reset();
    return take(waiting.front(), false);
  }
  if (!reservation_ || reservation_->run != waiting.front().run) reserve(waiting.front());
  const auto open = static_cast<std::size_t>(std::ranges::count_if(
      free_, [&](std::size_t place) { return !reservation_->devices.contains(place); }));
  for (auto request = waiting.begin() + 1; request != waiting.end(); ++request)
    if (request->devices <= open) return take(*request, true);
  return std::nullopt;
}

// Reserves the devices of as few active runs as possible, oldest first, because these will probably end
// first.
void DevicePool::reserve(const Request& first) {
  reservation_ = Reservation{first.run, {}};
  std::set<std::size_t>& devices = reservation_->devices;
  std::size_t will_be_free = free_.size();
  for (const Grant& lease : leases_) {
    if (will_be_free >= first.devices) break;
    will_be_free += lease.devices.size();
    for (const std::size_t place : lease.devices)
      if (devices.size() < first.devices) devices.insert(place);
  }
  for (const std::size_t place : free_)
    if (devices.size() < first.devices) devices.insert(place);
}

DevicePool::Grant DevicePool::take(const Request& request, bool beside_reserved) {
  Grant grant{request.run, {}};
  for (const std::size_t place : free_) {
    if (grant.devices.size() == request.devices) break;
    if (!beside_reserved || !reservation_->devices.contains(place)) grant.devices.push_back(place);
  }
  for (const std::size_t place : grant.devices) free_.erase(place);
  leases_.push_back(grant);
  return grant;
}

void DevicePool::release(std::size_t run) {
  const auto lease = std::ranges::find(leases_, run, &Grant::run);
  if (lease == leases_.end()) throw InternalError("a run without devices releases some");
  free_.insert(lease->devices.begin(), lease->devices.end());
  leases_.erase(lease);
}

void DevicePool::withhold(std::size_t device) {
  if (free_.erase(device) == 0) throw InternalError("a device that is not free is withheld");
}

void DevicePool::put_back(std::size_t device) {
  if (device >= all_ || !free_.insert(device).second) throw InternalError("a free device is put back");
}

}  // namespace trainyard::orchestrator
