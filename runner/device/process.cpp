#include "runner/device/process.h"

#include <csignal>
#include <exception>
#include <iostream>

#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/printable.h"

namespace trainyard::runner {

namespace {

constexpr int mebibyte = 1 << 20;

extern "C" void leave(int) {
  _exit(143);
}

[[noreturn]] void report_and_leave() {
  std::string text = "an exception without a description";
  try {
    if (const auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {  // it has none
  }
  std::cerr << "error: " + models::first_line(text) + "\n" << std::flush;  // in one write
  _exit(1);
}

}  // namespace

void tune_allocator() {
  mallopt(M_MMAP_THRESHOLD, 1024 * mebibyte);  // no mmap and munmap per tensor
  mallopt(M_TRIM_THRESHOLD, -1);               // freed memory stays
  mallopt(M_TOP_PAD, 64 * mebibyte);           // the heap grows in large steps
}

void die_with_parent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(143);  // it ended before the line above
}

void exit_on_sigterm() {
  struct sigaction action = {};
  action.sa_handler = leave;
  sigaction(SIGTERM, &action, nullptr);
}

void report_at_terminate() {
  std::set_terminate(report_and_leave);
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

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

int available_cores() {
  return std::max<int>(1, static_cast<int>(affinity().size()));
}

std::string cpu_list(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(cores[i]);
    if (last > i) text += "-" + std::to_string(cores[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace trainyard::runner
