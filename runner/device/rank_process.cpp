#include "runner/device/rank_process.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>

#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::runner {

namespace {

constexpr int mebibyte = 1 << 20;

extern "C" void exit_in_handler(int) {
  _exit(143);
}

[[noreturn]] void report_and_exit() {
  std::string text = "unknown exception";
  try {
    if (const auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {  // without a description
  }
  std::cerr << "error: " + first_line(text) + "\n" << std::flush;  // in one write
  _exit(1);
}

std::optional<std::string> text(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

int integer(const char* name, int fallback, int minimum, int maximum) {
  const auto value = text(name);
  if (!value) return fallback;
  int number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < minimum || number > maximum) {
    throw UserError(std::string(name) + "=" + *value + " is not an integer in " + std::to_string(minimum) +
                    " … " + std::to_string(maximum));
  }
  return number;
}

}  // namespace

void tune_allocator() {
  mallopt(M_MMAP_THRESHOLD, 1024 * mebibyte);  // no mmap and munmap per tensor
  mallopt(M_TRIM_THRESHOLD, -1);               // keep freed memory
  mallopt(M_TOP_PAD, 64 * mebibyte);           // the heap grows in large steps
}

void die_with_parent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(143);  // the parent ended before `prctl`
}

void exit_on_sigterm() {
  struct sigaction action = {};
  action.sa_handler = exit_in_handler;
  sigaction(SIGTERM, &action, nullptr);
}

void report_at_terminate() {
  std::set_terminate(report_and_exit);
}

void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

bool pin_to(const std::vector<int>& cores) {
  if (cores.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

Environment read_environment() {
  constexpr int most_ranks = 1 << 20;
  Environment environment;
  environment.world_size = integer("WORLD_SIZE", 1, 1, most_ranks);
  environment.rank = integer("RANK", 0, 0, environment.world_size - 1);
  environment.local_world_size =
      integer("LOCAL_WORLD_SIZE", environment.world_size, 1, environment.world_size);
  environment.local_rank = integer("LOCAL_RANK", environment.rank % environment.local_world_size, 0,
                                   environment.local_world_size - 1);
  environment.store_host = text("MASTER_ADDR").value_or(environment.store_host);
  environment.store_port = static_cast<std::uint16_t>(integer("MASTER_PORT", 0, 0, 65535));
  environment.store_file = text("TRAINYARD_STORE").value_or("");
  environment.agent_store = text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  environment.run_id = text("TORCHELASTIC_RUN_ID").value_or("");
  const auto run_file = text("TRAINYARD_RUN");
  if (!run_file) {
    throw UserError("TRAINYARD_RUN is not set",
                    "set it to the path of a run.json; `trainyard show RUN` prints the "
                    "complete command for one rank");
  }
  environment.run_file = *run_file;
  if (!environment.store_file.empty() && !environment.one_host()) {
    throw UserError("TRAINYARD_STORE is a file on one host, but LOCAL_WORLD_SIZE is smaller than WORLD_SIZE",
                    "set MASTER_ADDR and MASTER_PORT instead");
  }
  if (environment.world_size > 1 && environment.store_port == 0 && environment.store_file.empty()) {
    throw UserError("WORLD_SIZE is " + std::to_string(environment.world_size) +
                        " but neither TRAINYARD_STORE nor MASTER_PORT is set",
                    "set TRAINYARD_STORE to a new file, the same for all ranks of this host");
  }
  return environment;
}

Versions versions() {
  return {TRAINYARD_VERSION, TRAINYARD_BUILD_TYPE, TRAINYARD_LIBTORCH_VERSION, TRAINYARD_CUDA_VERSION,
          TRAINYARD_NCCL_VERSION};
}

nlohmann::ordered_json to_json(const Versions& versions) {
  return {{"trainyard", versions.trainyard},
          {"build_type", versions.build_type},
          {"libtorch", versions.libtorch},
          {"cuda", versions.cuda},
          {"nccl", versions.nccl}};
}

std::string to_text(const Versions& versions) {
  std::string text =
      "trainyard " + versions.trainyard + " (" + versions.build_type + ", LibTorch " + versions.libtorch;
  if (!versions.cuda.empty()) text += ", CUDA " + versions.cuda;
  if (!versions.nccl.empty()) text += ", NCCL " + versions.nccl;
  return text + ")";
}

}  // namespace trainyard::runner
