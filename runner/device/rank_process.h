// The process of a rank: allocator, cores and threads, signals, environment, and versions.
//
// How a rank settles as a process: its memory allocator, its cores and threads, the signals it takes, and
// that it never outlives the program that started it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace trainyard::runner {

// Keeps freed tensors in the heap instead of returning their pages after each one. To be called before
// anything allocates: at the very top of `main`.
void tune_allocator();

// SIGKILL for this process once its parent ends; leaves at once where that has happened already.
void die_with_parent();

// SIGTERM ends the process at once with code 143: records are whole after every `write`, so nothing is lost.
void exit_on_sigterm();

// An exception that no one catches, as NCCL's watchdog throws in a thread of its own, ends the process at
// once with code 1 and one line, "error: …": not with a signal and a core file as large as the memory.
void report_at_terminate();

// From here on a write to a connection that its peer has closed is an error, EPIPE, and not a signal that
// ends the process without a word. Gloo and the store are written for that: Python ignores SIGPIPE from its
// start.
void ignore_broken_pipes();

// Pins the process to `cores` (empty: leaves it as it is); false where the system does not allow that.
bool pin_to(const std::vector<int>& cores);

int available_cores();                                // in this process's affinity
std::string cpu_list(const std::vector<int>& cores);  // {0, 1, 2, 5} → "0-2,5"
std::vector<int> affinity();                          // the cores of this process

// What the launcher tells a process: torchrun's variables and TRAINYARD_RUN. Without them the process is the
// only rank.

struct Environment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string store_host = "127.0.0.1";  // MASTER_ADDR
  std::uint16_t store_port = 0;          // MASTER_PORT; 0 = there is no store
  bool agent_store = false;              // the launcher's store serves; else rank 0 opens one at that port
  std::string run_id;                    // TORCHELASTIC_RUN_ID: prefix of all keys in the store
  std::filesystem::path run_file;        // TRAINYARD_RUN
  bool one_host() const { return local_world_size == world_size; }
};

// UserError names the variable that is missing, not a number or contradicts another.
Environment read_environment();

// What this build is: `trainyard-runner --version --json`, and the versions that `start` records carry.

struct Versions {
  std::string trainyard;   // "0.1.0"
  std::string build_type;  // "Release"
  std::string libtorch;    // "2.13.0"
  std::string cuda;        // of the LibTorch wheel; empty for a CPU wheel
  std::string nccl;        // empty where NCCL is not built in
};

Versions versions();
nlohmann::ordered_json to_json(const Versions& versions);
std::string to_text(const Versions& versions);  // "trainyard 0.1.0 (Release, LibTorch 2.13.0)"

}  // namespace trainyard::runner
