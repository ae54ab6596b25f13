// Which of the waiting runs starts next, and on which devices. A run is a gang: it gets all of its devices or
// none. Runs start in order; where the first one has to wait, it reserves the devices it will start on (those
// of the runs that began first, then free ones), and a later run may start on what is neither taken nor
// reserved. So nothing stands idle without need, and a wide run never waits for one that came after it.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace trainyard::orchestrator {

class DevicePool {
 public:
  using Devices = std::vector<std::size_t>;  // places of devices, ascending

  explicit DevicePool(std::size_t devices);

  struct Request {
    std::size_t run = 0;      // its name to the caller; two requests at a time have different ones
    std::size_t devices = 1;  // how many it needs
  };
  struct Grant {
    std::size_t run = 0;
    Devices devices;
  };

  // The first of the waiting runs that can start now; its devices are taken. InternalError where one needs
  // more than there are.
  std::optional<Grant> grant(const std::vector<Request>& waiting);
  void release(std::size_t run);
  std::size_t free() const { return free_.size(); }

 private:
  struct Lease {
    std::size_t run = 0;
    Devices devices;
  };
  struct Reservation {
    std::size_t run = 0;
    std::set<std::size_t> devices;
  };

  void reserve(const Request& first);
  Grant take(const Request& request, bool beside_reserved);

  std::size_t all_;
  std::set<std::size_t> free_;
  std::vector<Lease> leases_;  // in the order in which they began
  std::optional<Reservation> reservation_;
};

}  // namespace trainyard::orchestrator
