#include "orchestrator/resources/device_leases.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "orchestrator/resources/cpu_topology.h"

namespace trainyard::orchestrator {

namespace {

int first_hyper_thread(int cpu) {
  const auto threads = hyper_threads_of(cpu);
  return threads.empty() ? cpu : *std::ranges::min_element(threads);
}

std::string as_name(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  return text;
}

std::string in_use(const LockPlace& place, const std::string& holder) {
  return place.of + " is in use by " + holder;
}

}  // namespace

std::vector<LockPlace> locks_of(const std::vector<Device>& devices, const std::filesystem::path& folder,
                                const std::function<int(int cpu)>& first_thread) {
  std::map<std::string, std::string> found;  // by the name of the file
  for (const Device& device : devices) {
    if (device.cores.empty()) continue;  // a launcher chooses the host of its ranks
    for (const int cpu : device.cores) {
      const std::string core = std::to_string(first_thread(cpu));
      found.emplace("trainyard-core-" + core + ".lock", "core " + core);
    }
    if (device.gpu.empty()) continue;
    const std::string id = device.uuid.empty() ? device.name : device.uuid;
    found.emplace("trainyard-gpu-" + as_name(id) + ".lock", "GPU " + device.name);
  }
  std::vector<LockPlace> places;
  for (const auto& [file, name] : found) places.push_back({folder / file, name});
  return places;
}

DeviceLeases::DeviceLeases(std::filesystem::path folder, HostUser user)
    : folder_(std::move(folder)), user_(std::move(user)) {}

std::vector<LockPlace> DeviceLeases::places(const std::vector<Device>& devices) const {
  return locks_of(devices, folder_, first_hyper_thread);
}

// If one lock fails, those before it end with `taken`.
bool DeviceLeases::try_take(const std::vector<Device>& devices) {
  const std::vector<LockPlace> wanted = places(devices);
  std::map<std::filesystem::path, Held> taken;
  for (const LockPlace& place : wanted) {
    if (held_.contains(place.file)) continue;
    auto lock = SharedLock::try_take(place, user_);
    if (!lock) {
      taken_ = in_use(place, shared_lock_holder(place));
      return false;
    }
    taken.emplace(place.file, Held{std::move(*lock)});
  }
  held_.merge(taken);
  for (const LockPlace& place : wanted) ++held_.at(place.file).count;
  return true;
}

bool DeviceLeases::wait(const std::vector<Device>& devices, const std::atomic<int>& stop,
                        const std::function<void(const std::string& taken)>& on_message) {
  for (const LockPlace& place : places(devices)) {
    if (!held_.contains(place.file)) {
      auto lock = SharedLock::wait(place, user_, stop,
                                   [&](const std::string& holder) { on_message(in_use(place, holder)); });
      if (!lock) return false;
      held_.emplace(place.file, Held{std::move(*lock)});
    }
    ++held_.at(place.file).count;
  }
  return true;
}

void DeviceLeases::give_back(const std::vector<Device>& devices) {
  for (const LockPlace& place : places(devices)) {
    const auto own = held_.find(place.file);
    if (own == held_.end()) throw InternalError("a device that is not leased is given back");
    if (--own->second.count == 0) held_.erase(own);
  }
}

bool DeviceLeases::are_free(const std::vector<Device>& devices) {
  const bool free = try_take(devices);
  if (free) give_back(devices);
  return free;
}

}  // namespace trainyard::orchestrator
