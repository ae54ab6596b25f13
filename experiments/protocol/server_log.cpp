#include "experiments/protocol/server_log.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "experiments/protocol/crc32c.h"

namespace trainyard::experiments {

namespace {

constexpr std::int64_t most_replicas = 1024;  // at most, so that an event is one number

}  // namespace

std::int64_t number_of(const ServerEvent& event) {
  return (event.update * most_replicas + event.replica) * 2 + (event.applied ? 1 : 0);
}

ServerEvent event_of(std::int64_t number) {
  return {number / 2 / most_replicas, static_cast<int>(number / 2 % most_replicas), number % 2 == 1};
}

std::string server_log_name(int server, std::int64_t epoch) {
  return fmt::format("server-{}.epoch-{}.log", server, epoch);
}

void write_server_log(const std::filesystem::path& file, const std::vector<std::int64_t>& events) {
  const std::string text = nlohmann::json(events).dump();
  write_whole_file(file, hexadecimal(crc32c(text)) + " " + text + "\n");
}

std::vector<std::int64_t> read_server_log(const std::filesystem::path& file) {
  const std::string line = whole_file(file);
  const std::size_t space = std::min(line.find(' '), line.size()),
                    end = std::min(line.find('\n'), line.size());
  const std::string text = space < end ? line.substr(space + 1, end - space - 1) : "";
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (line.substr(0, space) != hexadecimal(crc32c(text)) || !list.is_array())
    throw UserError("the log of a server is missing or damaged", "train the run again",
                    {.file = file.string()});
  return list.get<std::vector<std::int64_t>>();
}

}  // namespace trainyard::experiments
