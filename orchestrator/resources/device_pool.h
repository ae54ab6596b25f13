// Device pool: decides which waiting run starts next, and on which devices.
//
// - A run gets all of its devices or none.
// - Runs start in order. If the first one has to wait, it reserves devices: those of the oldest active runs,
//   then free ones. A later run may start on devices that are neither leased nor reserved.
// - Devices that another sweep of this host has are withheld, as if a run had leased them.
// - So devices are used as soon as possible, and a large run never waits for one that came after it.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace trainyard::orchestrator {

class DevicePool {
 public:
  using Devices = std::vector<std::size_t>;  // indices of devices, ascending

  explicit DevicePool(std::size_t devices);

  struct Request {
    std::size_t run = 0;      // ID from the caller, unique among the requests
    std::size_t devices = 1;  // number of devices that it needs
  };
  struct Grant {
    std::size_t run = 0;
    Devices devices;
  };

  // Leases devices to the first of the waiting runs that can start now. InternalError if a run needs more
  // devices than there are.
  std::optional<Grant> grant(const std::vector<Request>& waiting);
  void release(std::size_t run);
  // Takes a free device out of the pool while another sweep of this host has it, and puts it back.
  void withhold(std::size_t device);
  void put_back(std::size_t device);
  std::size_t free() const { return free_.size(); }

 private:
  struct Reservation {
    std::size_t run = 0;
    std::set<std::size_t> devices;
  };

  void reserve(const Request& first);
  Grant take(const Request& request, bool beside_reserved);

  std::size_t all_;
  std::set<std::size_t> free_;
  std::vector<Grant> leases_;  // oldest first
  std::optional<Reservation> reservation_;
};

}  // namespace trainyard::orchestrator
