// Processor time that other processes took while a run trained, from /proc/stat and getrusage(2): evidence
// that the run had its cores to itself. docs/other-processes.md has the method, the limit and how it was
// measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::orchestrator {

// A run's times count up to this share of its leased cores. docs/other-processes.md says why.
inline constexpr double others_limit = 0.02;
// Replaces `others_limit`: a share; for tests that train side by side.
inline constexpr const char* others_limit_variable = "TRAINYARD_OTHERS_LIMIT";
double others_limit_here();  // UserError if the variable does not hold a number >= 0

// Seconds since the host was started, of one CPU.
struct CpuSeconds {
  double busy = 0;    // user, nice, system, interrupts
  double stolen = 0;  // of a virtual machine: the CPU was wanted, and another machine had it
};
using HostSeconds = std::map<int, CpuSeconds>;  // by CPU number

// The lines "cpu0 …" of /proc/stat; empty if there are none.
HostSeconds parse_proc_stat(std::string_view text, double ticks_per_second);

// What is known at one moment.
struct ProcessorTimes {
  double at = 0;  // seconds of a steady clock
  HostSeconds host;
  double own = 0;  // of this process and of its children that have ended, with theirs
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

// `leased`: CPU numbers; `watched`: these and the other hyper-threads of their cores. Nothing if the kernel
// does not say what these CPUs did, or says less than we took ourselves.
std::optional<OtherUse> other_use(const ProcessorTimes& before, const ProcessorTimes& after,
                                  const std::vector<int>& leased, const std::vector<int>& watched);

// Why times do not count: "other processes took 31 % of its cores (limit 2 %)". Empty if they count. Less
// than a tenth of a second is within what the kernel's ticks of 10 ms can tell.
std::string use_problem(const OtherUse& use, double limit);

// The CPUs and the other hyper-threads of their cores, each once.
std::vector<int> with_hyper_threads(const std::vector<int>& cpus);

}  // namespace trainyard::orchestrator
