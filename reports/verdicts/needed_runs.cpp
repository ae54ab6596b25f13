#include "reports/verdicts/needed_runs.h"

#include <algorithm>
#include <vector>

#include "reports/verdicts/first_plan.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

namespace {

// The pairs of an undecided arm that have not finished, in the order of the plan.
struct OpenArm {
  double p = 1;  // the largest of its undecided metrics
  bool timed = false;
  struct OpenPair {
    bool before_first_look = false;
    std::vector<std::string> keys = {};
  };
  std::vector<OpenPair> pairs = {};
};

bool lacks_a_word(const CellVerdicts& judged, const std::string& arm) {
  return std::ranges::any_of(judged.verdicts, [&](const TestedVerdict& verdict) {
    return verdict.arm == arm && find_metric(verdict.metric).published && !is_decided(verdict.kind);
  });
}

class NeedCollector {
 public:
  void take(const ReportData& data, const experiments::Compare& compare, const CellVerdicts& judged) {
    for (const ArmRuns& arm : judged.cell.arms) {
      const auto undecided = judged.undecided.find(arm.value);
      const bool open = undecided != judged.undecided.end();
      ++needed_.cells;
      if (!open) ++needed_.settled;
      OpenArm own{.p = open ? undecided->second : 1, .timed = judged.times_undecided.contains(arm.value)};
      take_pairs(first_plan(data, compare, judged.cell, arm), judged, arm, open, own);
      if (open) open_.push_back(std::move(own));
    }
    for (const ArmRuns& limit : judged.cell.limits)
      for (const Observation& run : limit.runs)
        if (const Observation* baseline = partner_of(run, judged.cell.baseline);
            baseline && run.final == nullptr)
          limits_[run.run->run_key] = baseline->run->run_key;
  }

  NeededRuns result() {
    put_in_order();
    for (const auto& [key, place] : needed_.order) needed_.unneeded.erase(key);
    for (const auto& [limit, baseline] : limits_)
      if (needed_.unneeded.contains(baseline)) needed_.unneeded.insert(limit);
    return std::move(needed_);
  }

 private:
  void take_pairs(const FirstPlan& plan, const CellVerdicts& judged, const ArmRuns& arm, bool open,
                  OpenArm& own) {
    const bool repeats_failed = lacks_a_word(judged, arm.value);
    int place = 0;
    for (const Observation& run : judged.cell.baseline.runs) {
      const Observation* other = partner_of(run, arm);
      const bool is_later = plan.later.contains(run.pair);
      if (other == nullptr || (!plan.pairs.contains(run.pair) && !is_later)) continue;
      OpenArm::OpenPair pair{.before_first_look = !is_later && place++ < plan.looks.first};
      for (const Observation* one : {&run, other}) {
        const std::string& key = one->run->run_key;
        if (one->final != nullptr) {
          if (own.timed && one->final->times_problem == db::times_not_needed) needed_.lack_times.insert(key);
          continue;
        }
        needed_.unneeded.insert(key);
        if (open) pair.keys.push_back(key);
        if (repeats_failed && one->run->status == "failed") needed_.order[key] = 0;
      }
      if (!pair.keys.empty()) own.pairs.push_back(std::move(pair));
    }
  }

  void put_in_order() {
    std::ranges::stable_sort(open_, {}, &OpenArm::p);
    std::set<std::string> timed;
    for (std::size_t rank = 0; rank < open_.size(); ++rank) {
      std::size_t after_first_look = 0;
      for (const OpenArm::OpenPair& pair : open_[rank].pairs) {
        const std::size_t place = pair.before_first_look ? 0 : 1 + rank + open_.size() * after_first_look++;
        for (const std::string& key : pair.keys) {
          std::size_t& earliest = needed_.order.try_emplace(key, place).first->second;
          earliest = std::min(earliest, place);
          (open_[rank].timed ? timed : needed_.untimed).insert(key);
        }
      }
    }
    for (const std::string& key : timed) needed_.untimed.erase(key);
  }

  NeededRuns needed_;
  std::vector<OpenArm> open_;
  std::map<std::string, std::string> limits_;  // by run key of an independent run: that of its baseline
};

}  // namespace

NeededRuns needed_runs(const ReportData& data) {
  NeedCollector collector;
  for (const experiments::Compare& compare : data.plan.compare)
    if (compare.seeds)
      for (const CellVerdicts& judged : judge(data, compare)) collector.take(data, compare, judged);
  return collector.result();
}

}  // namespace trainyard::reports
