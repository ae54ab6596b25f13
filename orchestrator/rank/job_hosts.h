// The hosts of a job, for the gateway of its store: whether an address belongs to one of them.
//
// The tasks of a job write the addresses of their hosts to files. If a network file system does not answer, only
// one caller waits for it. The others get an answer from what was read before.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace trainyard::orchestrator {

class JobHosts {
 public:
  // Returns the addresses of the hosts of those ranks whose files are there.
  using Addresses = std::map<int, std::vector<std::string>>;
  using Reader = std::function<Addresses(const std::set<int>& ranks)>;

  JobHosts(int world_size, Reader reader);

  // If the address is unknown, reads the missing files, unless they are being read or were read a moment ago.
  // Thread-safe.
  bool contain(const std::string& address);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_known(const std::string& address);

  Reader reader_;
  std::mutex reading_;     // for `missing_` and `next_reading_`
  std::set<int> missing_;  // ranks whose file has not been read
  Clock::time_point next_reading_;
  std::mutex known_;  // for `addresses_`
  std::set<std::string> addresses_;
};

}  // namespace trainyard::orchestrator
