// The hosts of a job, for the gateway of its store: whether an address belongs to one of them.
//
// The tasks of a job write the addresses of their hosts to files. They are read in a thread of their own, so that
// a network file system that does not answer stops nobody who asks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace trainyard::orchestrator {

class JobHosts {
 public:
  // Returns the addresses of the hosts of those ranks whose files are there.
  using Addresses = std::map<int, std::vector<std::string>>;
  using Reader = std::function<Addresses(const std::set<int>& ranks)>;

  JobHosts(int world_size, Reader reader);
  ~JobHosts();  // waits for the end of a call of `reader`
  JobHosts(const JobHosts&) = delete;
  JobHosts& operator=(const JobHosts&) = delete;

  // - If the address is unknown, the missing files are read, and it waits for them for at most 200 ms.
  // - It does not wait if they are being read already, or were read a moment ago.
  bool contain(const std::string& address);

 private:
  using Clock = std::chrono::steady_clock;
  void read_on_demand();

  Reader reader_;
  std::mutex mutex_;  // for all that follows
  std::condition_variable changed_;
  std::set<int> missing_;  // ranks whose file has not been read
  std::set<std::string> addresses_;
  Clock::time_point next_reading_;
  bool reading_ = false, ended_ = false;
  std::thread thread_;  // starts last
};

}  // namespace trainyard::orchestrator
