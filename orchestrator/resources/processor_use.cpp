#include "orchestrator/resources/processor_use.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <set>
#include <sstream>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/host.h"
#include "base/number.h"
#include "base/text.h"
#include "orchestrator/resources/cpu_topology.h"

namespace trainyard::orchestrator {

namespace {

constexpr double tick_error = 0.1;  // seconds by which counters of ticks of 10 ms may be too small

// CPU number in "cpu12 …". Empty for the total of all CPUs and for other lines.
std::optional<int> cpu_of(const std::string& name) {
  return name.starts_with("cpu") ? parse_number<int>(name.substr(3)) : std::nullopt;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double rounded(double seconds) {
  return std::round(1000 * seconds) / 1000;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double processor_seconds(int who) {
  rusage use{};
  if (::getrusage(who, &use) != 0) return 0;
  return seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
}

// Processor time of a process that is not reaped yet.
double seconds_of_process(int pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::vector<ProcessFacts> descendants() {
  std::multimap<int, ProcessFacts> by_parent;
  for (const int pid : all_processes())
    if (auto process = facts_of(pid, true)) by_parent.emplace(process->parent, std::move(*process));
  std::vector<ProcessFacts> found;
  for (std::vector<int> parents{::getpid()}; !parents.empty();) {
    const auto [begin, end] = by_parent.equal_range(parents.back());
    parents.pop_back();
    for (auto child = begin; child != end; ++child) {
      parents.push_back(child->second.pid);
      found.push_back(std::move(child->second));
    }
  }
  return found;
}

double ticks_per_second() {
  return static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Use of these CPUs between two moments. Counters that decreased (a CPU was removed) count as zero.
CpuSeconds taken(const HostSeconds& before, const HostSeconds& after, const std::vector<int>& cpus) {
  CpuSeconds sum;
  for (const int cpu : cpus) {
    const auto from = before.find(cpu), to = after.find(cpu);
    if (from == before.end() || to == after.end()) continue;
    sum.busy += std::max(0.0, to->second.busy - from->second.busy);
    sum.stolen += std::max(0.0, to->second.stolen - from->second.stolen);
  }
  return sum;
}

// The CPUs and the other hyper-threads of their cores, each once.
std::vector<int> with_hyper_threads(const std::vector<int>& cpus) {
  std::set<int> all(cpus.begin(), cpus.end());
  for (const int cpu : cpus)
    for (const int sibling : hyper_threads_of(cpu)) all.insert(sibling);
  return {all.begin(), all.end()};
}

}  // namespace

double others_limit_here() {
  const char* given = std::getenv(others_limit_variable);
  if (given == nullptr || *given == '\0') return others_limit;
  char* end = nullptr;
  const double limit = std::strtod(given, &end);
  if (*end == '\0' && std::isfinite(limit) && limit >= 0) return limit;
  throw UserError(std::string(others_limit_variable) + " is " + printable_line(given) + ", not a number >= 0",
                  "set it to a share of the leased cores, for example 0.02");
}

// Columns: user, nice, system, idle, iowait, irq, softirq, steal. Time of guests is included in user.
HostSeconds parse_proc_stat(const std::string& text, double ticks_per_second) {
  HostSeconds found;
  for (const std::string& line : nonempty_lines(text)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto cpu = cpu_of(name);
    if (!cpu) continue;
    std::array<double, 8> ticks{};
    for (double& each : ticks) words >> each;
    const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    found[*cpu] = {busy / ticks_per_second, ticks[7] / ticks_per_second};
  }
  return found;
}

ProcessorTimes processor_times() {
  ProcessorTimes times{.processes = {{::getpid(), processor_seconds(RUSAGE_SELF)}}};
  times.own = processor_seconds(RUSAGE_SELF) + processor_seconds(RUSAGE_CHILDREN);
  for (const ProcessFacts& process : descendants()) {
    const double seconds = times.processes[process.pid] = seconds_of_process(process.pid);
    times.own += seconds + static_cast<double>(process.reaped_ticks) / ticks_per_second();
  }
  times.at = steady_seconds();
  times.host = parse_proc_stat(whole_file("/proc/stat"), ticks_per_second());
  return times;
}

std::optional<OtherUse> other_use(const ProcessorTimes& before, const ProcessorTimes& after,
                                  const std::vector<int>& leased, const std::vector<int>& watched) {
  const auto is_known = [&](int cpu) { return after.host.contains(cpu) && before.host.contains(cpu); };
  OtherUse use{.seconds = after.at - before.at};
  if (leased.empty() || use.seconds <= 0 || !std::ranges::all_of(leased, is_known)) return std::nullopt;
  const double own = after.own - before.own;
  const CpuSeconds here = taken(before.host, after.host, watched);
  if (here.busy < 0.5 * own - tick_error) return std::nullopt;  // the kernel does not count these CPUs
  std::vector<int> all;
  for (const auto& [cpu, seconds] : after.host) all.push_back(cpu);
  const CpuSeconds everywhere = taken(before.host, after.host, all);
  use.stolen_seconds = here.stolen;
  use.other_seconds = std::max(0.0, here.busy - own) + here.stolen;
  use.share = use.other_seconds / (use.seconds * static_cast<double>(leased.size()));
  use.host_share = (std::max(0.0, everywhere.busy - own) + everywhere.stolen) /
                   (use.seconds * static_cast<double>(all.size()));
  return use;
}

EpochUse::EpochUse(std::vector<int> leased)
    : leased_(std::move(leased)),
      watched_(with_hyper_threads(leased_)),
      begin_(processor_times()),
      last_(begin_),
      before_collect_(begin_),
      before_earlier_collect_(begin_),
      searched_(begin_.at) {}

void EpochUse::before_collecting() {
  before_earlier_collect_ = std::exchange(before_collect_, {});
  const double now = steady_seconds();
  if (last_epoch_ == 0 && now - begin_.at >= 2 * (searched_ - begin_.at)) {  // the ranks began after begin_
    searched_ = now;
    before_collect_ = processor_times();
    return;
  }
  before_collect_.at = now;
  before_collect_.host = parse_proc_stat(whole_file("/proc/stat"), ticks_per_second());
  const ProcessorTimes& known = last_epoch_ == 0 ? before_earlier_collect_ : last_;
  for (const auto& [pid, seconds] : known.processes) before_collect_.processes[pid] = seconds_of_process(pid);
}

void EpochUse::epoch_ended(std::int64_t epoch) {
  if (epoch <= seen_epoch_)
    return;  // later than at its end, a measurement would have a part of the next epoch
  seen_epoch_ = epoch;
  const double now = steady_seconds();
  // The record stays short, and measuring takes at most 1 % of a core.
  const double least = std::max({1.0, (now - begin_.at) / 1000, 100 * cost_});
  if (now - last_.at < least) return;
  const double before = processor_seconds(RUSAGE_SELF);
  measure(epoch, processor_times());
  cost_ = processor_seconds(RUSAGE_SELF) - before;
}

void EpochUse::measure(std::int64_t epoch, const ProcessorTimes& now) {
  const auto use = other_use(last_, now, leased_, watched_);
  const double most = (now.at - last_.at) * static_cast<double>(watched_.size());
  epochs_.push_back({epoch, rounded(now.at - last_.at),
                     use ? nlohmann::json(rounded(std::min(use->other_seconds, most))) : nullptr});
  before_last_ = std::exchange(last_, next_begin(now));
  last_epoch_ = epoch;
}

// The times before the earlier collection, which did not find the epoch that has ended now. What is not known of our own
// processes counts as used before that: so the next measurement has rather too much of others.
ProcessorTimes EpochUse::next_begin(const ProcessorTimes& now) const {
  ProcessorTimes begin = now;
  begin.host = before_earlier_collect_.host;
  for (const auto& [pid, seconds] : before_earlier_collect_.processes)
    if (const auto later = now.processes.find(pid); later != now.processes.end())
      begin.own -= std::max(0.0, later->second - seconds);
  return begin;
}

nlohmann::ordered_json EpochUse::record(std::int64_t epochs, double limit) {
  const ProcessorTimes now = processor_times();
  if (epochs > last_epoch_ && now.at - last_.at < 1 && !epochs_.empty()) {  // too short: with the one before
    epochs_.erase(epochs_.size() - 1);
    last_ = before_last_;
  }
  if (epochs > last_epoch_) measure(epochs, now);
  nlohmann::ordered_json body{{"cores", leased_.size()}, {"limit", limit}};
  if (const auto use = other_use(begin_, now, leased_, watched_))
    body.update({{"seconds", use->seconds},
                 {"other_seconds", use->other_seconds},
                 {"other_share", use->share},
                 {"stolen_seconds", use->stolen_seconds},
                 {"host_other_share", use->host_share},
                 {"epochs", epochs_}});
  return body;
}

}  // namespace trainyard::orchestrator
