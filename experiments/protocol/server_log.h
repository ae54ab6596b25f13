// The order in which an asynchronous server sent its parameters and applied gradients. It makes the training a pure
// function again (runner/optimizer/replayed_servers.h). The servers do not agree on one order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::experiments {

// A replica has read the parameters for an update, or the server has applied this update.
struct ServerEvent {
  std::int64_t update = 0;  // of the epoch, from 0
  int replica = 0;
  bool applied = false;
  bool operator==(const ServerEvent&) const = default;
};

// As one number of a log.
std::int64_t number_of(const ServerEvent& event);
ServerEvent event_of(std::int64_t number);

std::string server_log_name(int server, std::int64_t epoch);  // "server-0.epoch-3.log"

// One line: the CRC-32C of the rest, and a JSON list of the numbers.
void write_server_log(const std::filesystem::path& file, const std::vector<std::int64_t>& events);
// UserError if the file is missing or damaged.
std::vector<std::int64_t> read_server_log(const std::filesystem::path& file);

}  // namespace trainyard::experiments
