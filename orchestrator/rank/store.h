// The rendezvous of all runs of a sweep: one `trainyard-store`, a TCPStore on a port of the kernel's choice.
// Started when the first run of more than one rank asks for its address; replaced where it has died.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

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

}  // namespace trainyard::orchestrator
