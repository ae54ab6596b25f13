// Files for communication between the orchestrator and the tasks on other hosts (`rank_agent.h`). They are in
// the attempt's folder, on a shared file system. Each is written whole and renamed into place.
//   ranks.json     commands and environments of the ranks; from the orchestrator
//   rank-R.exit    how rank R ended, and whether its task received a signal; from R's task
//   rendezvous.json   rendezvous: port and addresses of the gateway to the store; from the task of rank 0
//   rank-R.host    addresses of the host of rank R, which may connect to the gateway; from R's task
//   store.secret   secret of the launch, launch_secret.h; from the task of rank 0
//   abandoned      the attempt was given up, and none of its tasks may start; from a later orchestrator
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

// Commands of all ranks of one attempt, for a launcher. The launcher adds torchrun's variables.
struct LaunchSpec {
  std::filesystem::path directory;  // of the attempt
  std::string run_id;               // "<key>/<attempt>"
  std::string token;                // in the environment of each of its processes: orphans.h
  bool foreign = false;             // ranks run the user's own program, which gets its own store
  std::vector<RankCommand> ranks;
};

struct RankGroupFile {
  std::string launcher;         // its name, by which a task detects its rank
  std::string job;              // its name; deterministic, so that a later orchestrator finds it
  std::filesystem::path store;  // trainyard-store
  LaunchSpec command;
  std::string allocation = {};  // number of the job that this is a step of; empty: a job of its own
  std::string interface = {};   // network interface of the hosts; empty: any
};

void write_rank_group_file(const RankGroupFile& group);  // into the attempt's folder
// Empty if there is none.
std::optional<RankGroupFile> read_rank_group_file(const std::filesystem::path& attempt_folder);

struct RankExit {
  ExitStatus status;
  int received_signal = 0;  // by the task, before its rank ended; 0: none
  std::string host;
};
std::string rank_exit_name(int rank);
void write_rank_exit(const std::filesystem::path& attempt_folder, int rank, const RankExit& exit);
std::optional<RankExit> read_rank_exit(const std::filesystem::path& attempt_folder, int rank);

struct RendezvousEndpoint {
  int port = 0;
  std::vector<std::string> addresses;  // of rank 0's host: its name and IPs, not all of them reachable
};
void write_rendezvous(const std::filesystem::path& attempt_folder, const RendezvousEndpoint& endpoint);
std::optional<RendezvousEndpoint> read_rendezvous(const std::filesystem::path& attempt_folder);

void write_rank_host(const std::filesystem::path& attempt_folder, int rank,
                     const std::vector<std::string>& addresses);
std::optional<std::vector<std::string>> read_rank_host(const std::filesystem::path& attempt_folder, int rank);

void abandon(const std::filesystem::path& attempt_folder);
bool abandoned(const std::filesystem::path& attempt_folder);

// Names in a folder, read again. A network file system caches that a file is missing, but not a listing.
// Empty if the folder cannot be read.
std::vector<std::string> fresh_listing(const std::filesystem::path& folder);

}  // namespace trainyard::orchestrator
