// Processor time that other processes took while a run trained, from /proc/stat and the clocks of its own processes:
// evidence that the run had its cores to itself. docs/other-processes.md has the method, the limit and how it was
// measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

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
HostSeconds parse_proc_stat(const std::string& text, double ticks_per_second);

// Processor times at one moment.
struct ProcessorTimes {
  double at = 0;  // seconds of a steady clock
  HostSeconds host = {};
  double own = 0;                        // of this process and its descendants, also of ended ones
  std::map<int, double> processes = {};  // the part of it that each of these processes used, by pid
};
ProcessorTimes processor_times();  // searches all processes of the host, which takes milliseconds

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

// Measures what other processes take while the ranks of an attempt train on these CPUs, from its construction on.
class EpochUse {
 public:
  explicit EpochUse(std::vector<int> leased);

  // Call it before the records of the ranks are collected. A measurement begins at the last such moment at which its first
  // epoch had not begun. It ends after its last epoch. So it misses nothing that others took during its epochs.
  void before_collecting();
  // All ranks have finished epoch `epoch`. Epochs are measured together until they take a second, a thousandth of the
  // time so far, and a hundred times as long as a measurement.
  void epoch_ended(std::int64_t epoch);
  // The record `processor_use`, once all processes of the attempt are reaped. `epochs`: the last one.
  nlohmann::ordered_json record(std::int64_t epochs, double limit);

 private:
  void measure(std::int64_t epoch, const ProcessorTimes& now);
  ProcessorTimes next_begin(const ProcessorTimes& now) const;

  std::vector<int> leased_, watched_;
  ProcessorTimes begin_, last_, before_last_;
  ProcessorTimes before_collect_, before_earlier_collect_;
  double searched_;  // when processes were last searched for in the first epochs
  std::int64_t last_epoch_ = 0, seen_epoch_ = 0;
  double cost_ = 0;  // processor seconds of the last measurement
  nlohmann::ordered_json epochs_ = nlohmann::ordered_json::array();  // as docs/other-processes.md says
};

}  // namespace trainyard::orchestrator
