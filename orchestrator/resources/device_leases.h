// Leases of cores and GPUs, so that two sweeps of one host never use the same one at once. They hold across
// yards and users.
//
// - Each physical core and each GPU has a lock file (`shared_lock.h`) in the folder of the host lock:
//   `trainyard-core-3.lock`, `trainyard-gpu-GPU-….lock`.
// - The name does not depend on the process. A core has the number of its first hyper-thread, and a GPU has
//   its UUID. So the CPU affinity and CUDA_VISIBLE_DEVICES of a process change nothing.
// - A timed sweep leases the devices of all its runs until it ends. It has the host lock, so there is only one.
//   It waits for one device after the other, and keeps those that it has.
// - Other sweeps lease the devices of one run, all or none, until that run ends. They never wait while they
//   hold some. So there is no deadlock.
// - Ranks of one sweep can share devices, because leases are counted.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/resources/devices.h"
#include "orchestrator/resources/shared_lock.h"

namespace trainyard::orchestrator {

// Locks of the cores and GPUs of these devices, each once, in the order of their names. None for slots of a
// launcher. `first_thread`: the lowest CPU number of the physical core of a CPU.
std::vector<LockPlace> locks_of(const std::vector<Device>& devices, const std::filesystem::path& folder,
                                const std::function<int(int cpu)>& first_thread);

class DeviceLeases {
 public:
  DeviceLeases(std::filesystem::path folder, HostUser user);

  // Leases all of the devices, or none, also if it throws. False if another process has one of them.
  bool try_take(const std::vector<Device>& devices);
  // Waits until all are leased. Calls `on_message` once for each text of `taken`. False if `stop` was set.
  bool wait(const std::vector<Device>& devices, const std::atomic<int>& stop,
            const std::function<void(const std::string& taken)>& on_message);
  void give_back(const std::vector<Device>& devices);
  // Whether this process has the devices or could lease them now.
  bool are_free(const std::vector<Device>& devices);
  bool is_free(const Device& device) { return are_free({device}); }
  // Why the last attempt failed: "core 3 is in use by process 4711 of ana (…), since …".
  const std::string& taken() const { return taken_; }

 private:
  struct Held {
    SharedLock lock;
    int count = 0;  // leases of this process
  };
  std::vector<LockPlace> places(const std::vector<Device>& devices) const;

  std::filesystem::path folder_;
  HostUser user_;
  std::map<std::filesystem::path, Held> held_;
  std::string taken_;
};

}  // namespace trainyard::orchestrator
