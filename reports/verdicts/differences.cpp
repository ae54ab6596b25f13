#include "reports/verdicts/differences.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

bool no_loss_where_others_count(double loss, double accuracy) {
  return std::isinf(loss) || (std::isnan(loss) && !std::isnan(accuracy));
}

// Why two times cannot be compared: another machine, program or environment. Empty if they can.
std::string other_circumstances(const Observation& a, const Observation& b) {
  if (a.launched == nullptr || b.launched == nullptr) return "";
  const experiments::Circumstances& left = a.launched->circumstances;
  const experiments::Circumstances& right = b.launched->circumstances;
  if (left.host != right.host || left.processor != right.processor || left.release != right.release ||
      left.libtorch != right.libtorch || left.nccl != right.nccl)
    return "different machines or releases";
  return joined(experiments::differing_settings(left, right),
                [](const experiments::SettingDifference& one) { return experiments::to_text(one); });
}

// Runs of one arm without a value, by reason.
struct Lacks {
  int failed = 0;
  int uncounted = 0;  // times do not count
  int unmeasured = 0;
  std::set<std::string> problems;  // of the uncounted, without the load of other processes
  std::vector<double> loads;       // of the uncounted: shares of their cores that other processes took
  int all() const { return failed + uncounted + unmeasured; }
};

// "the only run of ddp", "both runs of ddp", "all three runs of ddp".
std::string every_run_of(const ArmRuns& arm) {
  const std::size_t runs = arm.runs.size();
  const std::string which = runs == 1   ? "the only run"
                            : runs == 2 ? "both runs"
                                        : "all " + in_words(runs) + " runs";
  return fmt::format("{} of {}", which, arm.value);
}

std::string not_counted(const Metric& metric) {
  return metric.kind->plural ? "do not count" : "does not count";
}

std::string words_of(const Metric& metric) {
  std::string words = metric.name;
  std::ranges::replace(words, '-', ' ');
  return words;
}

// The least and most that other processes took of the cores of uncounted runs.
std::optional<Interval> load_of(const std::vector<const Lacks*>& arms) {
  std::vector<double> loads;
  for (const Lacks* arm : arms) loads.insert(loads.end(), arm->loads.begin(), arm->loads.end());
  if (loads.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(loads);
  return Interval{least, most};
}

// Why times do not count: " (other processes took 32 – 78 % of their cores; other runs shared the host)".
std::string causes_of(const std::vector<const Lacks*>& arms) {
  std::set<std::string> causes;
  for (const Lacks* arm : arms) causes.insert(arm->problems.begin(), arm->problems.end());
  if (const auto load = load_of(arms)) causes.insert(load_text(load->low, load->high));
  return causes.empty() ? "" : " (" + joined(causes, {}, "; ") + ")";
}

// Why no run of the arm has a value; empty if some run has one.
std::string missing_in(const ArmRuns& arm, const Lacks& lacks, const Metric& metric) {
  const auto runs = static_cast<int>(arm.runs.size());
  if (runs == 0) return "no run of " + arm.value + " is planned";
  if (lacks.all() < runs) return "";
  if (lacks.failed == runs) return every_run_of(arm) + " failed";
  const std::string_view cost = metric.kind->measured;
  if (lacks.uncounted == runs)
    return fmt::format("the {} of {} {}{}", cost, every_run_of(arm), not_counted(metric),
                       causes_of({&lacks}));
  if (lacks.unmeasured == runs) return fmt::format("{} recorded no {}", every_run_of(arm), words_of(metric));
  std::vector<std::string> parts;
  const auto add = [&](int count, const std::string& what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", in_words(count), what));
  };
  add(lacks.failed, "failed");
  add(lacks.uncounted, fmt::format("measured {} that {}", cost, not_counted(metric)));
  add(lacks.unmeasured, "recorded no " + words_of(metric));
  return fmt::format("no run of {} has a value: {}", arm.value, joined(parts));
}

class Collector {
 public:
  Collector(const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric,
            const experiments::Compare& compare)
      : baseline_(baseline), arm_(arm), metric_(metric), column_(final_column(metric)), compare_(compare) {}

  Differences result() {
    if (compare_.pair.empty()) {
      for (const Observation& a : baseline_.runs)
        add_single(a, baseline_.value, result_.baseline, result_.baseline_diverged);
      for (const Observation& b : arm_.runs) add_single(b, arm_.value, result_.arm, result_.arm_diverged);
      result_.both_diverged = result_.baseline_diverged && result_.arm_diverged;
    } else {
      for (const Observation& a : baseline_.runs)
        if (const Observation* b = partner_of(a, arm_)) add_pair(a, *b);
    }
    if (result_.baseline.empty() || result_.arm.empty()) say_what_is_missing();
    for (const ArmRuns* arm : {&baseline_, &arm_})
      result_.open_runs += static_cast<int>(std::ranges::count_if(arm->runs, is_open));
    return std::move(result_);
  }

 private:
  void drop(const Observation& observation, const std::string& why) {
    result_.dropped.push_back(fmt::format("{}: {}", pair_name(observation, compare_), why));
  }

  // Whether all runs of the arm have times that do not count.
  bool all_uncounted(const ArmRuns& arm) {
    return !arm.runs.empty() && lacks_[arm.value].uncounted == static_cast<int>(arm.runs.size());
  }

  void say_what_is_missing() {
    std::vector<std::string> parts;
    const Lacks &first = lacks_[baseline_.value], &second = lacks_[arm_.value];
    if (all_uncounted(baseline_) && all_uncounted(arm_)) {
      parts.push_back(fmt::format("the {} of all runs of {} and {} {}{}", metric_.kind->measured,
                                  baseline_.value, arm_.value, not_counted(metric_),
                                  causes_of({&first, &second})));
    } else {
      for (const ArmRuns* arm : {&baseline_, &arm_})
        if (std::string part = missing_in(*arm, lacks_[arm->value], metric_); !part.empty())
          parts.push_back(std::move(part));
    }
    if (first.problems.empty() && second.problems.empty()) result_.load = load_of({&first, &second});
    result_.missing = parts.empty() ? "no pair of runs has a value in both arms" : joined(parts, {}, "; ");
  }

  // Whether the run has a value for the test. If not, records the reason.
  bool usable(const Observation& observation, const std::string& arm) {
    const db::RunSummary& run = *observation.run;
    Lacks& lacks = lacks_[arm];
    if (run.status == "failed") {
      ++lacks.failed;
      drop(observation, fmt::format("{} failed{}", arm, run.failure.empty() ? "" : ": " + run.failure));
      return false;
    }
    if (observation.final == nullptr) return false;
    if (!value_counts(observation, metric_)) {
      ++lacks.uncounted;
      const db::FinalMetrics& final = *observation.final;
      const std::string& problem = final.times_problem;
      if (final.other_share > final.others_limit)
        lacks.loads.push_back(final.other_share);
      else if (!problem.empty())
        lacks.problems.insert(problem);
      if (problem != db::times_not_needed || !compare_.seeds)  // else the pair stays open
        drop(observation,
             fmt::format("{}: {}: its {} {}", arm, problem, metric_.kind->measured, not_counted(metric_)));
      return false;
    }
    if (!std::isfinite((*observation.final)[column_])) {
      ++lacks.unmeasured;
      drop(observation, arm + " has no value");
      return false;
    }
    return true;
  }

  double number_of(const Observation& observation) {
    const bool median = metric_.kind->is_cost() && !metric_.column.starts_with("total_");
    if (metric_.kind->depends_on_others) {
      result_.timed_epochs += observation.final->timed_epochs;
      result_.disturbed_epochs += observation.final->disturbed_epochs;
    }
    result_.warm_up_counts = result_.warm_up_counts || (median && observation.final->epochs < 3);
    return (*observation.final)[column_];
  }

  // Accuracy and loss of a diverged run are an outcome, not values to average. Its times are valid.
  bool took_divergence(bool a, bool b) {
    if (metric_.kind->is_cost() || (!a && !b)) return false;
    (a && b ? result_.both_diverged : a ? result_.baseline_diverged : result_.arm_diverged) = true;
    return true;
  }

  void add_pair(const Observation& a, const Observation& b) {
    if (a.final != nullptr && b.final != nullptr && took_divergence(has_diverged(a), has_diverged(b))) return;
    const bool first = usable(a, baseline_.value);
    const bool second = usable(b, arm_.value);  // not short-circuited: each run records its own reason
    if (!first || !second) return;
    if (const std::string other = other_circumstances(a, b); metric_.kind->is_cost() && !other.empty()) {
      drop(a, fmt::format("{}: {} {} not compared", other, metric_.kind->measured,
                          metric_.kind->plural ? "are" : "is"));
      return;
    }
    result_.baseline.push_back(number_of(a));
    result_.arm.push_back(number_of(b));
  }

  void add_single(const Observation& observation, const std::string& arm, std::vector<double>& values,
                  bool& diverged) {
    if (!metric_.kind->is_cost() && has_diverged(observation)) {
      diverged = true;
    } else if (usable(observation, arm)) {
      values.push_back(number_of(observation));
    }
  }

  const ArmRuns& baseline_;
  const ArmRuns& arm_;
  const Metric& metric_;
  const db::MetricColumn column_;  // looked up once
  const experiments::Compare& compare_;
  std::map<std::string, Lacks> lacks_;  // by arm
  Differences result_;
};

double transformed(double value, const Measure& measure) {
  switch (measure.scale) {
    case Scale::log_ratio:
      return -std::log(value);
    case Scale::absolute:
      return -value;
    case Scale::points:
      return measure.points * value;
    case Scale::decibels:
      return value;
  }
  return value;
}

Measure loss_measure(const std::vector<double>& baseline, const experiments::LossMargin& margin) {
  if (!baseline.empty() && margin.absolute > (margin.ratio - 1) * mean_of(baseline))
    return {Scale::absolute, margin.absolute};
  return {Scale::log_ratio, std::log(margin.ratio)};
}

}  // namespace

// NaN as training loss counts only for models that are known to have one: a foreign arm may not report a loss.
bool has_diverged(const Observation& observation) {
  if (observation.final == nullptr) return false;
  const Metric* const loss = known_metric("train-loss");
  const db::FinalMetrics& final = *observation.final;
  return no_loss_where_others_count(final["train_loss"], final["train_accuracy"]) ||
         no_loss_where_others_count(final["validation_loss"], final["validation_accuracy"]) ||
         no_loss_where_others_count(final["test_loss"], final["test_accuracy"]) ||
         (std::isnan(final["train_loss"]) && loss != nullptr && known_to_have(*observation.run, *loss));
}

bool is_defined(const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric) {
  if (metric.is_total() && (baseline.runs.empty() || arm.runs.empty() ||
                            baseline.runs.front().run->epochs == arm.runs.front().run->epochs))
    return false;
  bool known = false, finished = false, diverged = false;
  for (const ArmRuns* side : {&baseline, &arm})
    for (const Observation& observation : side->runs) {
      known = known || known_to_have(*observation.run, metric);
      if (observation.final == nullptr) continue;
      if (!std::isnan((*observation.final)[final_column(metric)])) return true;
      finished = true;
      diverged = diverged || has_diverged(observation);
    }
  return known && (!finished || diverged);
}

Differences collect_differences(const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric,
                                const experiments::Compare& compare) {
  return Collector(baseline, arm, metric, compare).result();
}

std::vector<std::string> without_partner(const ArmRuns& baseline, const ArmRuns& arm,
                                         const experiments::Compare& compare) {
  std::vector<std::string> alone;
  if (compare.pair.empty()) return alone;
  const auto add = [&](const ArmRuns& of, const ArmRuns& other) {
    for (const Observation& one : of.runs)
      if (partner_of(one, other) == nullptr)
        alone.push_back(fmt::format("{}: {} has no such run", pair_name(one, compare), other.value));
  };
  add(baseline, arm);
  add(arm, baseline);
  return alone;
}

Measure measure_for(const Differences& differences, const Metric& metric,
                    const experiments::Margins& margins) {
  if (const auto own = margins.own.find(metric.own_name); own != margins.own.end())
    return {Scale::points, own->second, metric.kind->scale};
  switch (metric.kind->margin) {
    case Margin::points:
      return {Scale::points, metric.margin.value_or(margins.accuracy_points), metric.kind->scale};
    case Margin::cost:
      return {Scale::log_ratio, std::log(margins.time)};
    case Margin::loss:
      if (metric.margin) return {Scale::log_ratio, std::log1p(*metric.margin / 100)};
      return loss_measure(differences.baseline, margins.loss);
    case Margin::loss_ratio:
      return {Scale::log_ratio, std::log(margins.loss.ratio)};
    case Margin::decibels:
      return {Scale::decibels, psnr_margin(margins.loss)};
  }
  throw InternalError("no margin for " + metric.name);
}

std::vector<double> transformed(const std::vector<double>& values, const Measure& measure) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(measure.sign * transformed(value, measure));
  return result;
}

}  // namespace trainyard::reports
