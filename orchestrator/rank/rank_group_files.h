// Files by which the orchestrator and the tasks on other hosts (`rank_agent.h`) speak with each other. They
// lie in the attempt's folder, on a file system that all hosts share; each is written whole and renamed into
// place.
//   gang.json      what to start: commands and environments of the ranks. From the orchestrator.
//   rank-R.exit    how rank R ended, and whether its host was told to end it. From R's task.
//   meeting.json   where the ranks meet: port and addresses of the store. From the task of rank 0.
//   abandoned      nobody waits for this attempt any more: no task of it may start. From a successor.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

// What a launcher starts: the commands of all ranks of one attempt.

// All ranks of one attempt. Their commands lack what the launcher adds: torchrun's variables.
struct LaunchSpec {
  std::filesystem::path directory;  // the attempt's
  std::string run_id;               // "<key>/<attempt>"
  std::string token;                // in the environment of each of its processes, see leftovers.h
  bool foreign = false;             // its ranks are a program of the user's, which gets a store of its own
  std::vector<RankCommand> ranks;
};

struct RankGroupFile {
  std::string launcher;         // its name: how a task finds its rank
  std::string job;              // name of the job; deterministic, so that a successor finds it
  std::filesystem::path store;  // trainyard-store
  LaunchSpec command;
  std::string allocation = {};  // number of the job whose step it is; empty: it is a job of its own
};
void write_rank_group_file(const RankGroupFile& gang);  // into the attempt's folder
std::optional<RankGroupFile> read_rank_group_file(
    const std::filesystem::path& attempt_folder);  // nothing if there is none

struct RankExit {
  ExitStatus status;
  int told = 0;  // signal that reached the task from outside before its rank ended; 0: none
  std::string host;
};
std::string rank_exit_name(int rank);
void write_rank_exit(const std::filesystem::path& attempt_folder, int rank, const RankExit& exit);
std::optional<RankExit> read_rank_exit(const std::filesystem::path& attempt_folder, int rank);

struct RendezvousEndpoint {
  int port = 0;
  std::vector<std::string>
      addresses;  // names and numbers of the store's host; each may or may not be reachable
};
void write_rendezvous(const std::filesystem::path& attempt_folder, const RendezvousEndpoint& meeting);
std::optional<RendezvousEndpoint> read_rendezvous(const std::filesystem::path& attempt_folder);

void abandon(const std::filesystem::path& attempt_folder);
bool abandoned(const std::filesystem::path& attempt_folder);

// The names in a folder, asked anew: a network file system's client remembers for a while that a file is not
// there, but not what a listing says. Empty where the folder cannot be read.
std::vector<std::string> fresh_listing(const std::filesystem::path& folder);

}  // namespace trainyard::orchestrator
