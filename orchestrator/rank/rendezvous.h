// Rendezvous of the ranks of a job. The host of rank 0 runs the store and publishes its addresses. Each rank
// uses the first one that it can reach.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/rank/process.h"
#include "orchestrator/rank/rank_group_files.h"

namespace trainyard::orchestrator {

struct StoreAddress {
  std::string host;
  std::string port;
};

// Address in the store's output, "127.0.0.1 29500\n". Empty while the line is incomplete.
std::optional<StoreAddress> parse_store_address(const std::string& output);

// `trainyard-store`: a TCPStore on a port that the kernel chooses, for foreign programs and for several hosts.
// It is started when its address is first needed, and again if it has died.
class StoreProcess {
 public:
  // `log`: file for the store's output, from which the address is read. `for_other_hosts`: it listens on all
  // network interfaces, not only on 127.0.0.1.
  StoreProcess(std::filesystem::path program, std::filesystem::path log, bool for_other_hosts = false);
  StoreAddress address();  // UserError if the store does not start

 private:
  void start();

  std::vector<std::string> argv_;
  std::filesystem::path log_;
  std::unique_ptr<RankProcess> process_;
  StoreAddress address_;
};

// The store of trainyard's own ranks on one host: an empty file in the attempt's folder that only this user can
// open. UserError if it cannot be made.
std::filesystem::path make_store_file(const std::filesystem::path& attempt_folder);

// Addresses of this host: its name, the IPs of its networks, and 127.0.0.1 for tasks on the same host.
std::vector<std::string> own_addresses();

// The first address that accepts a connection. Empty if none does.
std::optional<StoreAddress> reachable(const RendezvousEndpoint& meeting);

}  // namespace trainyard::orchestrator
