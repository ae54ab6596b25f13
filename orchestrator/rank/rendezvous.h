// Rendezvous of the ranks of a job: the store, and the addresses of hosts. On several hosts, the task of rank 0
// publishes the addresses of the way to the store (store_relay.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "orchestrator/rank/process.h"
#include "orchestrator/rank/rank_group_files.h"

namespace trainyard::orchestrator {

struct StoreAddress {
  std::string host;
  std::string port;
};

// Address in the store's output, "127.0.0.1 29500\n". Empty while the line is incomplete.
std::optional<StoreAddress> parse_store_address(const std::string& output);

// `trainyard-store`: a TCPStore on a port of the loopback interface that the kernel chooses, for foreign programs
// and for several hosts. It refuses connections of other users.
class StoreProcess {
 public:
  // `log`: file for the store's output, from which the address is read. UserError if the store does not start.
  StoreProcess(const std::filesystem::path& program, const std::filesystem::path& log);
  const StoreAddress& address() const { return address_; }

 private:
  std::unique_ptr<RankProcess> process_;
  StoreAddress address_;
};

// The store of trainyard's own ranks on one host: an empty file in the attempt's folder that only this user can
// open. UserError if it cannot be made.
std::filesystem::path make_store_file(const std::filesystem::path& attempt_folder);

// Addresses of this host: its name, the IPs of its networks, or of one interface, and 127.0.0.1 for tasks on the
// same host.
std::vector<std::string> own_addresses(const std::string& interface = "");

// IPs of a network interface, or of all of them if `name` is empty. Empty if this host does not have it.
std::vector<std::string> addresses_of_interface(const std::string& name);

std::string numeric_address(const sockaddr& address, socklen_t size);  // asks no name server

}  // namespace trainyard::orchestrator
