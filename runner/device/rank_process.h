// The process of a rank: allocator, cores, signals, environment variables and versions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace trainyard::runner {

// Keeps freed memory in the heap instead of returning the pages of each tensor. Call it first in `main`,
// before anything allocates.
void tune_allocator();

// Sends SIGKILL to this process when its parent ends. Exits at once if the parent has already ended.
void die_with_parent();

// SIGTERM ends the process at once with code 143. Nothing is lost, because records are complete after every
// `write`.
void exit_on_sigterm();

// An uncaught exception ends the process at once with code 1 and one line "error: …", without a signal and a
// large core file. NCCL's watchdog throws such exceptions in its own thread.
void report_at_terminate();

// Ignores SIGPIPE. From now on, a write to a connection that the peer has closed fails with EPIPE. Gloo and
// the store expect that, because Python ignores SIGPIPE too.
void ignore_broken_pipes();

// Pins the process to `cores`, or does nothing if `cores` is empty. False if the system does not allow it.
bool pin_to(const std::vector<int>& cores);

// Environment variables that the launcher sets: those of torchrun, and TRAINYARD_RUN. Without torchrun's
// variables the process is the only rank.
struct Environment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string store_host = "127.0.0.1";  // MASTER_ADDR
  std::uint16_t store_port = 0;          // MASTER_PORT; 0: no store
  std::filesystem::path store_file;      // TRAINYARD_STORE: the store is this file instead, on one host
  bool agent_store = false;              // the launcher serves the store; else rank 0 does, at that port
  std::string run_id;                    // TORCHELASTIC_RUN_ID: prefix of all keys in the store
  std::filesystem::path run_file;        // TRAINYARD_RUN
  bool one_host() const { return local_world_size == world_size; }
};

// UserError with the variable that is missing, is not a number or contradicts another variable.
Environment read_environment();

// Versions of this build, for `trainyard-runner --version --json` and `start` records.
struct Versions {
  std::string trainyard;   // "0.1.0"
  std::string build_type;  // "Release"
  std::string libtorch;    // "2.13.0"
  std::string cuda;        // of the LibTorch wheel; empty for a CPU wheel
  std::string nccl;        // empty in a build without NCCL
};

Versions versions();
nlohmann::ordered_json to_json(const Versions& versions);
std::string to_text(const Versions& versions);  // "trainyard 0.1.0 (Release, LibTorch 2.13.0)"

}  // namespace trainyard::runner
