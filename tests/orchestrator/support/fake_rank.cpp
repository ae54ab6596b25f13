// A stand-in for trainyard-runner. It reads the launch contract and writes the records of a short training.
// FAKE_RANK_<rank>, or else FAKE_RANK, chooses what it does:
//   finish         write all records, exit 0
//   fail           write `end` with an error, exit 3
//   die            print an error to stderr, exit 3
//   die-late       die after 0.3 s
//   kill           SIGKILL itself
//   leave          exit 0 without `end`
//   hang           wait for ever (a rendezvous that never completes)
//   deaf           hang, and ignore SIGTERM
//   torn           write half a record, then hang
//   garbage        finish with a damaged `end`
//   junk           append 20,000 lines that are not records, then hang
//   junk-at-end    append 2,000 lines that are not records after all records, then finish
//   endless        append 3 MiB without a newline, then hang
//   slow           finish after 0.3 s
//   kill-after-N   SIGKILL itself after N records of the first attempt, else finish
//   hang-after-N   hang after N records of the first attempt, else finish
//   hang-in-probe  with seed 0 hang after the first step of the parity check, else finish
//   blame          wait 0.1 s, print the error of a lost peer, exit 3
//   forsaken       write `end` with the reason peer_lost, exit 3
//   crawl          20 steps of 0.1 s each, then hang
//   crawl-home     35 steps of 0.1 s each, then finish
//   second         die in the first attempt, else finish
//   seed-0-dies    die with seed 0, else hang
//   grandchild     start a process in its own session that stays, then finish
//   escape         start a process in its own session and with an empty environment that stays, then hang
// "kill once 0 hangs" does "kill" as soon as rank 0 hangs.
// FAKE_RANK_FAULT, for example "7 disk full", makes calls on the run's checkpoints fail from that call on,
// in the first attempt only. If the run keeps checkpoints, each loss depends on all epochs before it.
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>
#include <sched.h>
#include <unistd.h>

#include "experiments/protocol/launch.h"
#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "tests/faults/fault_layer.h"
#include "tests/orchestrator/support/fake_training.h"

namespace {

namespace experiments = trainyard::experiments;
using namespace trainyard::fake;

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string behaviour(int rank) {
  const std::string own = variable("FAKE_RANK_" + std::to_string(rank));
  if (!own.empty()) return own;
  const std::string common = variable("FAKE_RANK");
  return common.empty() ? "finish" : common;
}

// The behaviour after " once ": waits until that rank hangs.
std::string once_its_peer_hangs(const std::string& reported, const std::filesystem::path& folder) {
  const std::string once = " once ";
  const auto at = reported.find(once);
  if (at == std::string::npos) return reported;
  const int peer = std::stoi(reported.substr(at + once.size()));
  while (!std::filesystem::exists(hanging_file(folder, peer)))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return reported.substr(0, at);
}

// Writes what the rank got, for the tests: one NAME=value per line, and its CPUs.
void write_surroundings(const std::filesystem::path& file) {
  std::ofstream out(file);
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                           "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE",
                           "OMP_NUM_THREADS", "TRAINYARD_RUN", "TRAINYARD_STORE", "CUDA_VISIBLE_DEVICES"})
    out << name << "=" << variable(name) << "\n";
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  out << "cores=";
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cores)) out << cpu << ",";
  out << "\n";
}

// Writes the pid of the new process to `file` before it returns.
void start_grandchild(const std::filesystem::path& file) {
  if (fork() == 0) {
    setsid();
    std::ofstream(file) << getpid() << std::endl;
    wait_for_ever();
  }
  for (std::string line; line.empty(); std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
    std::ifstream in(file);
    std::getline(in, line);
    if (in.eof()) line.clear();  // its newline is not written yet
  }
}

// Only an ancestor can find this process. Its pid is written to `file`.
void start_escaping_grandchild(const std::filesystem::path& file) {
  if (fork() != 0) return;
  setsid();
  std::ofstream(file) << getpid() << std::endl;
  char* const nothing[] = {nullptr};
  execle("/bin/sleep", "sleep", "1000", nullptr, nothing);
  _exit(1);
}

// Makes steps of 0.1 s.
void crawl(const std::filesystem::path& folder, int rank, std::uint64_t steps) {
  experiments::ProgressWriter progress(folder / experiments::rank_progress_name(rank));
  for (std::uint64_t step = 1; step <= steps; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    progress.write(
        {.phase = experiments::Phase::train, .epoch = 1, .epochs = 2, .step = step, .steps = steps});
  }
}

void append(const experiments::Launch& launch, int rank, const std::string& text) {
  std::ofstream(launch.records / experiments::rank_records_name(rank), std::ios::app) << text;
}

std::string junk(int lines) {
  std::string text;
  for (int line = 0; line < lines; ++line) text += "x\n";
  return text;
}

int die() {
  std::cerr << "starting\nRuntimeError: the cat sat on the keyboard\nbye" << std::endl;
  return 3;
}

int blame_a_peer() {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::cerr << "RuntimeError: Connection closed by peer" << std::endl;
  return 3;
}

void arm_fault(const experiments::Launch& launch) {
  std::istringstream what(variable("FAKE_RANK_FAULT"));
  std::string name;
  long at_call = 0;
  if (launch.attempt > 1 || !std::getline(what >> at_call >> std::ws, name)) return;
  for (const auto fault : {trainyard::faults::Fault::killed, trainyard::faults::Fault::full})
    if (trainyard::faults::name_of(fault) == name) trainyard::faults::arm(fault, at_call, launch.checkpoints);
}

// FAKE_RANK_GPUS=N: a CUDA build with N GPUs and the NCCL of FAKE_RANK_NCCL (default 2.29.7).
void print_versions() {
  const std::string gpus = variable("FAKE_RANK_GPUS");
  const std::string asked = variable("FAKE_RANK_NCCL");
  const std::string nccl = asked.empty() ? "2.29.7" : asked;
  nlohmann::json versions{{"trainyard", "0.1.0"},
                          {"build_type", "Release"},
                          {"libtorch", "2.13.0"},
                          {"cuda", gpus.empty() ? "" : "13.0"},
                          {"nccl", gpus.empty() ? "" : nccl},
                          {"gpus", nlohmann::json::array()}};
  for (int index = 0; !gpus.empty() && index < std::stoi(gpus); ++index)
    versions["gpus"].push_back({{"index", index},
                                {"name", "NVIDIA H200"},
                                {"memory_bytes", 150'754'820'096},
                                {"uuid", "GPU-" + std::to_string(index)}});
  std::cout << versions.dump() << std::endl;
}

int train(const experiments::Launch& launch, int rank, int world_size) {
  const std::string what = once_its_peer_hangs(behaviour(rank), launch.records);
  Records records(launch, rank, what);
  const Place place = place_of(launch, rank);
  if (place.replica == 0)
    experiments::ProgressWriter(launch.records / experiments::rank_progress_name(rank))
        .write({.phase = experiments::Phase::train,
                .epoch = 1,
                .epochs = 2,
                .step = 3,
                .steps = 7,
                .loss = place.last() ? 0.5 : std::nan("")});
  if (what == "deaf") std::signal(SIGTERM, SIG_IGN);
  write_start(records, place, world_size);
  if (launch.probe)
    records.append("probe", {{"step", 1}, {"loss", 2.25}, {"layers", nlohmann::json::array()}});
  if (what == "hang-in-probe" && launch.run.seed == 0) {
    experiments::ProgressWriter(launch.records / experiments::rank_progress_name(rank))
        .write({.phase = experiments::Phase::probe, .epochs = 2, .step = 1, .steps = 2});
    hang(launch.records, rank);
  }
  if (what == "kill") raise(SIGKILL);
  if (what == "escape") start_escaping_grandchild(launch.records / "escaped");
  if (what == "hang" || what == "deaf" || what == "escape") hang(launch.records, rank);
  if (what == "leave") return 0;
  if (what == "torn") {
    append(launch, rank, R"({"v":1,"run":")");
    hang(launch.records, rank);
  }
  if (what == "junk" || what == "endless") {
    append(launch, rank, what == "junk" ? junk(20'000) : std::string(3 << 20, 'x'));
    hang(launch.records, rank);
  }
  if (what == "die") return die();
  if (what == "second" && launch.attempt == 1) return die();
  if (what == "seed-0-dies") {
    if (launch.run.seed == 0) return die();
    hang(launch.records, rank);
  }
  if (what == "blame") return blame_a_peer();
  if (what == "die-late") {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return die();
  }
  if (what == "forsaken") {
    records.append("end", {{"status", "failed"},
                           {"error", "rank 0: all-reduce failed: rank 1 has ended"},
                           {"reason", "peer_lost"}});
    return 3;
  }
  if (what == "crawl" || what == "crawl-home") crawl(launch.records, rank, what == "crawl" ? 20 : 35);
  if (what == "crawl") hang(launch.records, rank);
  if (what == "fail") {
    records.append("end", {{"status", "failed"},
                           {"setup_seconds", 0.5},
                           {"total_seconds", 1},
                           {"error", "the loss is not a number in epoch 1, step 12"}});
    return 3;
  }
  if (what == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (what == "grandchild") start_grandchild(launch.records / "grandchild");
  arm_fault(launch);
  try {
    write_training(records, launch, place);
  } catch (const std::exception& error) {
    records.append("end", {{"status", "failed"}, {"error", error.what()}});
    return 3;
  }
  if (what == "garbage") {
    append(launch, rank,
           R"({"v":1,"type":"end","status":"finished","crc":"00000000"})"
           "\n");
    return 0;
  }
  write_end(records);
  if (what == "junk-at-end") append(launch, rank, junk(2000));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    print_versions();
    return 0;
  }
  const auto launch = experiments::read_launch(variable("TRAINYARD_RUN"));
  const int rank = std::stoi(variable("RANK"));
  write_surroundings(launch.records / ("surroundings-" + std::to_string(rank)));
  return train(launch, rank, std::stoi(variable("WORLD_SIZE")));
}
