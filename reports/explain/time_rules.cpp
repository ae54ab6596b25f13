#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/explain/causes.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

using Phases = std::map<std::string, double>;

constexpr double late_share = 0.45;        // of its own time, by which the late rank needs more
constexpr double quiet_late_share = 0.35;  // the same, if no other process takes cores
constexpr double often_late_share = 0.2;   // the same in several pairs
constexpr double felt_share = 0.1;         // of a step
constexpr double idle_share = 0.5;         // of that, for which another rank waits
constexpr double input_share = 0.1;        // of a step
constexpr double spinning = 1.7;           // times the processor time that the samples need
constexpr double crowded_share = 0.1;      // of a step
constexpr double link_share = 0.2;         // of a step
constexpr double slower_link = 3;          // times the time of an idle link
constexpr double idle_link = 150e6;        // bytes per second of Gloo between two processes of one host

double of(const Phases& phases, const char* name) {
  const auto found = phases.find(name);
  return found == phases.end() ? 0 : found->second;
}

double idle(const Phases& phases) {
  return of(phases, "wait") + of(phases, "buffers") + of(phases, "collectives");
}

std::string milliseconds(double seconds) {
  constexpr double per_second = 1000;
  return plain_number(per_second * seconds, 3) + " ms";
}

double longest_step(const Facts& facts) {
  double longest = 0;
  for (const Phases& phases : facts.phases) longest = std::max(longest, of(phases, "step"));
  return longest;
}

double least(const Facts& facts, const char* name) {
  double smallest = INFINITY;
  for (const Phases& phases : facts.phases) smallest = std::min(smallest, of(phases, name));
  return smallest;
}

struct Part {
  const char* name;
  const char* title;
};
constexpr std::array parts{
    Part{"input", "its wait for samples"}, Part{"before", "code before its forward pass"},
    Part{"forward", "its forward pass"}, Part{"between", "code outside of forward and backward pass"},
    Part{"backward", "its backward pass"}};

// The part in which rank `late` needs most time more.
const char* longest_part(const Phases& late, const Phases& first) {
  return std::ranges::max_element(
             parts, {}, [&](const Part& part) { return of(late, part.name) - of(first, part.name); })
      ->title;
}

// Whether other processes take cores from the ranks. Then an exchange waits for them.
bool is_crowded(const Facts& facts) {
  return std::ranges::any_of(facts.phases, [](const Phases& phases) {
    return of(phases, "queue_delay") > crowded_share * of(phases, "step");
  });
}

std::optional<Finding> straggler(const ExplainedPair& pair) {
  const std::vector<Phases>& ranks = pair.arm.phases;
  if (ranks.size() < 2) return {};
  const double share = is_crowded(pair.arm) ? late_share
                       : pair.pairs > 1     ? often_late_share
                                            : quiet_late_share;
  const auto own = [](const Phases& phases) { return of(phases, "own"); };
  const auto [first, late] = std::ranges::minmax_element(ranks, {}, own);
  const double more = own(*late) - own(*first), waits = idle(*first) - idle(*late);
  if (more <= std::max(share * own(*late), felt_share * longest_step(pair.arm)) || waits <= idle_share * more)
    return {};
  const auto rank = late - ranks.begin(), other = first - ranks.begin();
  const char* part = longest_part(*late, *first);
  return Finding{
      fmt::format(
          "rank {} works {} per step, rank {} works {} and waits {} longer; rank {} loses the time in {}",
          rank, milliseconds(own(*late)), other, milliseconds(own(*first)), milliseconds(waits), rank, part),
      fmt::format("profile this part on rank {}: what does it do that rank {} does not?", rank, other)};
}

// Seconds that a step of a rank needs of this phase, if its samples need as long as in the baseline. NaN: not known.
double needed(const ExplainedPair& pair, const char* phase) {
  const Facts &arm = pair.arm, &baseline = pair.baseline;
  if (baseline.phases.empty()) return NAN;
  const double share = arm.step_samples() / static_cast<double>(arm.ranks) / baseline.step_samples() *
                       static_cast<double>(baseline.ranks);
  return least(baseline, phase) * share;
}

std::optional<Finding> input(const ExplainedPair& pair) {
  if (pair.arm.phases.empty()) return {};
  const double waits = least(pair.arm, "input"), step = longest_step(pair.arm);
  if (waits - std::fmax(needed(pair, "input"), 0) <= input_share * step) return {};
  return Finding{fmt::format("each rank waits {} of a step of {} for its samples", milliseconds(waits),
                             milliseconds(step)),
                 "use more workers, DataLoader(…, num_workers=2, persistent_workers=True), or make a sample "
                 "cheaper to read"};
}

// Idle threads of OpenMP spin, so ranks with too many threads need more processor time for the same work.
std::optional<Finding> threads(const ExplainedPair& pair) {
  const Facts& arm = pair.arm;
  if (arm.phases.empty() || arm.threads <= 1) return {};
  const auto ranks = static_cast<double>(arm.ranks);
  const double enough = needed(pair, "processor"), used = least(arm, "processor");
  if (!(arm.threads * ranks > arm.cores) || !(used > spinning * enough)) return {};
  return Finding{
      fmt::format("{} ranks with {} threads each on {}: {} of processor time per step and "
                  "rank, where {} needs {}",
                  arm.ranks, plain_number(arm.threads), counted(static_cast<std::int64_t>(arm.cores), "core"),
                  milliseconds(used), pair.name, milliseconds(enough)),
      fmt::format("call torch.set_num_threads({0}), or set OMP_NUM_THREADS={0}",
                  std::max(1.0, std::floor(arm.cores / ranks)))};
}

std::optional<Finding> slow_link(const ExplainedPair& pair) {
  if (pair.arm.phases.size() < 2 || !(pair.arm.gradient_bytes > 0)) return {};
  const double waits = least(pair.arm, "shortest_wait");
  if (is_crowded(pair.arm)) return {};
  if (waits <= link_share * longest_step(pair.arm) ||
      waits <= slower_link * pair.arm.gradient_bytes / idle_link)
    return {};
  constexpr double mega = 1e6;
  return Finding{fmt::format("each rank needs {} per step to exchange {} MB of gradients: {} MB per second",
                             milliseconds(waits), plain_number(pair.arm.gradient_bytes / mega, 2),
                             plain_number(pair.arm.gradient_bytes / waits / mega, 2)),
                 "let DistributedDataParallel exchange the gradients, or all_reduce them as one tensor; "
                 "check backend and network"};
}

std::optional<Finding> repeated_exchange(const ExplainedPair& pair) {
  const auto each_pass = [](const WatchedStep& step) {
    return !step.exchanges.empty() && !step.kept.empty() && step.kept.front() > 1 &&
           step.exchanges.front() >= step.kept.front();
  };
  const std::vector<WatchedStep>& steps = pair.arm.steps;
  if (steps.empty() || !std::ranges::all_of(steps, each_pass)) return {};
  return Finding{fmt::format("gradients are exchanged in each of {} backward passes of a step",
                             plain_number(steps.front().kept.front())),
                 "use model.no_sync() in all of them but the last one"};
}

constexpr std::array rules_of_times{Rule{"straggler", true, straggler}, Rule{"input", true, input},
                                    Rule{"threads", true, threads}, Rule{"slow-exchange", true, slow_link},
                                    Rule{"repeated-exchange", true, repeated_exchange}};

}  // namespace

std::span<const Rule> time_rules() {
  return rules_of_times;
}

}  // namespace trainyard::reports
