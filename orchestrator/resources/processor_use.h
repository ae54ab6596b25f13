// Processor time that other processes took while a run trained, from /proc/stat and getrusage(2): evidence
// that the run had its cores to itself. docs/other-processes.md has the method, the limit and how it was
// measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/protocol/launch.h"

namespace trainyard::orchestrator {

using experiments::others_limit;
// Environment variable that replaces `others_limit`, for tests that train side by side.
inline constexpr const char* others_limit_variable = "TRAINYARD_OTHERS_LIMIT";
double others_limit_here();  // UserError if the variable does not hold a number >= 0

// Seconds of one CPU since the host was started.
struct CpuSeconds {
  double busy = 0;    // user, nice, system, interrupts
  double stolen = 0;  // steal time of a virtual machine: another machine had the CPU
};
using HostSeconds = std::map<int, CpuSeconds>;  // by CPU number

// The lines "cpu0 …" of /proc/stat; empty if there are none.
HostSeconds parse_proc_stat(std::string_view text, double ticks_per_second);

// Processor times at one moment.
struct ProcessorTimes {
  double at = 0;  // seconds of a steady clock
  HostSeconds host;
  double own = 0;  // of this process and its descendants that have ended
};
ProcessorTimes processor_times();

// What other processes took between two moments.
struct OtherUse {
  double seconds = 0;         // between the moments
  double other_seconds = 0;   // on the leased cores and on their hyper-threads
  double share = 0;           // of the leased cores
  double stolen_seconds = 0;  // the part of other_seconds that other virtual machines took
  double host_share = 0;      // of all CPUs of the host
};

// Use between two moments. Empty if the kernel does not count these CPUs, or counts less than our own time.
// `leased`: CPU numbers. `watched`: these and the other hyper-threads of their cores.
std::optional<OtherUse> other_use(const ProcessorTimes& before, const ProcessorTimes& after,
                                  const std::vector<int>& leased, const std::vector<int>& watched);

// Why times do not count: "other processes took 31 % of its cores (limit 2 %)". Empty if they count. Less
// than 0.1 s always counts, because the kernel's ticks of 10 ms cannot measure it.
std::string use_problem(const OtherUse& use, double limit);

// The CPUs and the other hyper-threads of their cores, each once.
std::vector<int> with_hyper_threads(const std::vector<int>& cpus);

}  // namespace trainyard::orchestrator
