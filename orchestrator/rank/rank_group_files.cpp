#include "orchestrator/rank/rank_group_files.h"

#include <algorithm>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/files.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* group_name = "ranks.json";
constexpr const char* rendezvous_name = "rendezvous.json";
constexpr const char* abandoned_name = "abandoned";

nlohmann::ordered_json to_json(const RankCommand& rank) {
  return {{"argv", rank.argv},
          {"environment", rank.environment},
          {"log", rank.log.string()},
          {"folder", rank.folder.string()}};
}

RankCommand rank_from_json(const nlohmann::json& json) {
  return {.argv = json.at("argv"),
          .environment = json.at("environment"),
          .cores = {},
          .log = json.at("log").get<std::string>(),
          .folder = json.at("folder").get<std::string>()};
}

// Result of `read` for the object in `file`. Empty if the file is missing or malformed.
template <class Read>
auto from_object(const fs::path& file, Read read) -> std::optional<decltype(read(nlohmann::json()))> {
  const auto json = nlohmann::json::parse(whole_file(file), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    return read(json);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string rank_host_name(int rank) {
  return "rank-" + std::to_string(rank) + ".host";
}

}  // namespace

void write_rank_group_file(const RankGroupFile& group) {
  nlohmann::ordered_json json = {{"v", 1},
                                 {"launcher", group.launcher},
                                 {"job", group.job},
                                 {"allocation", group.allocation},
                                 {"interface", group.interface},
                                 {"store", group.store.string()},
                                 {"run_id", group.command.run_id},
                                 {"token", group.command.token},
                                 {"foreign", group.command.foreign}};
  for (const RankCommand& rank : group.command.ranks) json["ranks"].push_back(to_json(rank));
  write_whole_file(group.command.directory / group_name, json.dump() + "\n");
}

std::optional<RankGroupFile> read_rank_group_file(const fs::path& attempt_folder) {
  return from_object(attempt_folder / group_name, [&](const nlohmann::json& json) {
    RankGroupFile group{json.at("launcher"),
                        json.at("job"),
                        json.at("store").get<std::string>(),
                        {},
                        json.at("allocation"),
                        json.value("interface", "")};  // earlier releases have none
    group.command = {attempt_folder, json.at("run_id"), json.at("token"), json.at("foreign"), {}};
    for (const auto& rank : json.at("ranks")) group.command.ranks.push_back(rank_from_json(rank));
    return group;
  });
}

std::string rank_exit_name(int rank) {
  return "rank-" + std::to_string(rank) + ".exit";
}

void write_rank_exit(const fs::path& attempt_folder, int rank, const RankExit& exit) {
  const nlohmann::ordered_json json = {{"code", exit.status.code},
                                       {"signal", exit.status.signal},
                                       {"received_signal", exit.received_signal},
                                       {"host", exit.host}};
  write_whole_file(attempt_folder / rank_exit_name(rank), json.dump() + "\n");
}

std::optional<RankExit> read_rank_exit(const fs::path& attempt_folder, int rank) {
  return from_object(attempt_folder / rank_exit_name(rank), [](const nlohmann::json& json) {
    return RankExit{{json.at("code"), json.at("signal")}, json.at("received_signal"), json.at("host")};
  });
}

void write_rendezvous(const fs::path& attempt_folder, const RendezvousEndpoint& endpoint) {
  const nlohmann::ordered_json json = {{"port", endpoint.port}, {"addresses", endpoint.addresses}};
  write_whole_file(attempt_folder / rendezvous_name, json.dump() + "\n");
}

std::optional<RendezvousEndpoint> read_rendezvous(const fs::path& attempt_folder) {
  return from_object(attempt_folder / rendezvous_name, [](const nlohmann::json& json) {
    return RendezvousEndpoint{json.at("port"), json.at("addresses")};
  });
}

void write_rank_host(const fs::path& attempt_folder, int rank, const std::vector<std::string>& addresses) {
  const nlohmann::ordered_json json = {{"addresses", addresses}};
  write_whole_file(attempt_folder / rank_host_name(rank), json.dump() + "\n");
}

std::optional<std::vector<std::string>> read_rank_host(const fs::path& attempt_folder, int rank) {
  return from_object(attempt_folder / rank_host_name(rank), [](const nlohmann::json& json) {
    return json.at("addresses").get<std::vector<std::string>>();
  });
}

void abandon(const fs::path& attempt_folder) {
  write_whole_file(attempt_folder / abandoned_name, "\n");
}

bool abandoned(const fs::path& attempt_folder) {
  const auto names = fresh_listing(attempt_folder);
  return std::ranges::find(names, abandoned_name) != names.end();
}

std::vector<std::string> fresh_listing(const fs::path& folder) {
  std::error_code failed;
  return names_in(folder, failed);
}

}  // namespace trainyard::orchestrator
