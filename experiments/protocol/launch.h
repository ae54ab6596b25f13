// `run.json`: what an attempt's ranks are told. Written by the orchestrator before launch, read by each rank
// (its path is in TRAINYARD_RUN), by `db` on ingest, and by people. Foreign programs may rely on the members
// `run, attempt, seed, epochs, axes, records`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/run/run.h"

namespace trainyard::experiments {

// Where and with what a run is trained; recorded per attempt, with a hash of its own. Two attempts are
// comparable in time only where the hashes are equal.
struct Circumstances {
  std::string host;
  std::string processor;  // CPU or GPU model
  int threads_per_rank = 1;
  double ranks_per_device = 1;
  std::string release;                // of trainyard, with build type: "0.1.0 Release"
  std::string libtorch;               // "2.13.0"
  std::string nccl;                   // empty on CPU
  std::string communicator = "auto";  // as [machine] asks
  bool operator==(const Circumstances&) const = default;
};
nlohmann::json to_json(const Circumstances& circumstances);
Circumstances circumstances_from_json(const nlohmann::json& json);
std::string circumstances_hash(const Circumstances& circumstances);  // 12 hexadecimal digits

// What an attempt goes on from: the epochs of `attempt`, and of what that resumed, up to `after_epoch`.
struct Resumes {
  int attempt = 0;
  std::int64_t after_epoch = 0;
  bool operator==(const Resumes&) const = default;
};

struct Launch {
  std::string key;
  int attempt = 1;
  std::filesystem::path records;  // the attempt's directory, absolute
  std::string experiment;         // name, for people
  Run run;
  std::vector<std::string> devices;     // of each rank: "cpu:0-1", "cuda:0", or `gpu_of_task` of it
  std::vector<std::vector<int>> cores;  // of each rank: CPU numbers it is pinned to; empty = not pinned
  bool host_exclusive = true;           // no other timed run beside it: its times count in verdicts
  bool devices_shared = false;          // more ranks than devices: its times are marked
  bool host_locked = true;  // this host's lock for timed runs was held; releases before that had none
  bool probe = false;       // two steps are held against the virtual mesh first: runner/parity/parity_check.h
  int retries_left = 0;     // attempts that may follow where this one fails
  Circumstances circumstances;
  std::filesystem::path checkpoints;  // the run's folder for them, absolute; empty: it keeps none
  std::optional<Resumes> resumes;     // empty: it begins at epoch 1
  std::string created;                // UTC
};

// A cluster gives rank R's task a GPU of its own, which the rank finds out: "cuda of task R".
std::string gpu_of_task(std::size_t rank);

// Members: v, run (key), attempt, records, experiment, seed, epochs, axes, work (the Run), devices, cores,
// host_exclusive, devices_shared, host_locked (absent: false), probe (absent: false), circumstances,
// circumstances_hash, world_size, created; where the run keeps checkpoints `checkpoints`, where it goes on
// from one `resumes_attempt` and `resumes_after_epoch`, and where it may be tried again `retries_left`.
nlohmann::json to_json(const Launch& launch);
Launch launch_from_json(const nlohmann::json& json);
void write_launch(const Launch& launch);                    // atomically, as records/run.json, fsynced
Launch read_launch(const std::filesystem::path& run_file);  // UserError names the file and what is wrong

}  // namespace trainyard::experiments
