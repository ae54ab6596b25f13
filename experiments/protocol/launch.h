// `run.json`: the input of the ranks of an attempt. The orchestrator writes it before launch; ranks and `db`
// read it. Its path is in TRAINYARD_RUN.
// Foreign programs may rely on the members `run, attempt, seed, epochs, axes, records`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/run/run.h"

namespace trainyard::experiments {

// Times count if other processes took at most this share of the leased cores. Reason:
// docs/other-processes.md.
inline constexpr double others_limit = 0.02;

// Circumstances of an attempt: its hardware and software. They are recorded with a hash. `run` trains again
// what has finished under others. Times of two attempts are compared only if host, processor, versions, build
// and environment are equal.
struct Circumstances {
  std::string host;
  std::string processor;  // CPU or GPU model
  int threads_per_rank = 1;
  double ranks_per_device = 1;
  std::string release;                                  // of trainyard, with build type: "0.1.0 Release"
  std::string libtorch;                                 // "2.13.0"
  std::string nccl;                                     // empty on CPU
  std::string communicator = "auto";                    // as in [machine]
  std::string build = {};                               // orchestrator/resources/build_id.h; empty: not known
  std::map<std::string, std::string> environment = {};  // of its ranks: what `may_change_speed`
  bool operator==(const Circumstances&) const = default;
};
nlohmann::json to_json(const Circumstances& circumstances);
Circumstances circumstances_from_json(const nlohmann::json& json);
std::string circumstances_hash(const Circumstances& circumstances);  // 12 hexadecimal digits

// Whether a variable of the environment may change the speed or the rounding of a rank. False for
// OMP_NUM_THREADS: each launch sets it to `threads_per_rank`.
bool may_change_speed(std::string_view variable);

// A difference in build or environment, with the text "not set" or "not recorded" for a missing value.
struct SettingDifference {
  std::string name;  // "build", "ATEN_CPU_CAPABILITY"
  std::string first;
  std::string second;
};
std::vector<SettingDifference> differing_settings(const Circumstances& first, const Circumstances& second);
std::string to_text(const SettingDifference& difference);  // "build 3fa9… against 77c0…": second, then first

// The resumed attempt: its epochs up to `after_epoch`, including those that it resumed itself.
struct Resumes {
  int attempt = 0;
  std::int64_t after_epoch = 0;
  bool operator==(const Resumes&) const = default;
};

// Replicas of an attempt that has fewer than its run (`min_replicas`). Its times do not count.
struct Membership {
  std::int64_t replicas = 0;
  std::string cause;  // "2 of 3 replicas: rank 2 was killed in attempt 1"
  bool operator==(const Membership&) const = default;
};

struct Launch {
  std::string key;
  int attempt = 1;
  std::filesystem::path records;  // the attempt's directory, absolute
  std::string experiment;         // its name, for people
  Run run;
  std::vector<std::string> devices;     // per rank: "cpu:0-1", "cuda:0", or `gpu_of_task`
  std::vector<std::vector<int>> cores;  // per rank: CPUs it is pinned to; empty: not pinned
  bool host_exclusive = true;           // no other timed run on the host: its times count in verdicts
  bool times_needed = true;             // false: no verdict needs them, so it shares the host
  bool devices_shared = false;          // more ranks than devices, or more threads than cores
  bool probe = false;                   // do the parity check first: runner/parity/parity_check.h
  int retries_left = 0;                 // further attempts if this one fails
  Circumstances circumstances;
  std::filesystem::path checkpoints;     // the run's folder for them, absolute; empty: no checkpoints
  std::optional<Resumes> resumes;        // empty: starts at epoch 1
  std::optional<Membership> membership;  // empty: all replicas of `run`
  std::string created;                   // UTC
  std::string commit;                    // of trainyard; empty: not known

  Strategy strategy() const;  // that of the run, with the replicas of this attempt
};

// Device of a rank on a cluster: "cuda of task R". Only the rank itself finds out which GPU its task has.
std::string gpu_of_task(std::size_t rank);

// Members: v, run (key), attempt, records, experiment, seed, epochs, axes, work (the Run), devices, cores,
// host_exclusive, devices_shared, probe, circumstances,
// circumstances_hash, world_size, created. The file has `crc` too.
// Optional: checkpoints, commit, membership, retries_left, resumes_attempt, resumes_after_epoch, times_needed.
nlohmann::json to_json(const Launch& launch);
Launch launch_from_json(const nlohmann::json& json);
// Writes run.json in `records`, atomically and durably, with a seal (seal.h) as the last member `crc`.
void write_launch(const Launch& launch);

inline constexpr std::size_t longest_run_file = std::size_t{64} << 20;

// The content of a run.json, whose seal is right.
struct RunFile {
  nlohmann::json content;  // without the seal
  Launch launch;
};
RunFile run_file_from_text(std::string_view text);  // UserError without the file's name

// UserError if it is not a plain file with a valid run.json of at most `longest_run_file` bytes.
Launch read_launch(const std::filesystem::path& run_file);

}  // namespace trainyard::experiments
