// Where the ranks of a job meet: rank 0's host serves the store and says by which names and numbers it might
// be reached; each rank takes the first that it reaches.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/rank/process.h"
#include "orchestrator/rank/rank_group_files.h"

namespace trainyard::orchestrator {

// The rendezvous of all runs of a sweep: one `trainyard-store`, a TCPStore on a port of the kernel's choice.
// Started when the first run of more than one rank asks for its address; replaced where it has died.

struct StoreAddress {
  std::string host;
  std::string port;
};

// The address in the store's output, "127.0.0.1 29500\n"; nothing while the line is not whole.
std::optional<StoreAddress> parse_store_address(const std::string& output);

class StoreProcess {
 public:
  // `log` takes the store's output, which is where its address is read.
  StoreProcess(std::filesystem::path program, std::filesystem::path log);
  StoreAddress address();  // UserError where the store does not start

 private:
  void start();

  std::filesystem::path program_;
  std::filesystem::path log_;
  std::unique_ptr<RankProcess> process_;
  StoreAddress address_;
};

// This host's name, then the numbers of its networks; last 127.0.0.1, for tasks beside the store.
std::vector<std::string> own_addresses();

// The first of the addresses that takes a connection; nothing where none does.
std::optional<StoreAddress> reachable(const RendezvousEndpoint& meeting);

}  // namespace trainyard::orchestrator
