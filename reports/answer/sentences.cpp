// The sentences of the answer: which models get faster, what happens to accuracy and loss, what is not decided.
// Each sentence lists verdicts by name.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/names.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

constexpr std::size_t most_items = 6;  // of one list
constexpr std::size_t most_reasons = 3;

constexpr std::array<MetricKind, 3> table_kinds{MetricKind::time, MetricKind::accuracy, MetricKind::loss};

const char* name_of(MetricKind kind) {
  return kind == MetricKind::time ? "training time" : kind == MetricKind::accuracy ? "accuracy" : "loss";
}

// One verdict with the name of its cell and arm: "MLP", "MLP with ddp", "2 threads".
struct Item {
  std::string name;
  const Verdict* verdict = nullptr;
};

std::vector<Item> items_on(const Comparison& comparison, const std::string& metric) {
  const bool several = arms_of(comparison).size() > 1;
  const std::vector<std::string> labels = cell_names(comparison);
  std::vector<Item> items;
  for (std::size_t i = 0; i < comparison.cells.size(); ++i)
    for (const Verdict& verdict : comparison.cells[i].verdicts) {
      if (verdict.metric != metric) continue;
      const std::string arm = several || labels[i].empty() ? value_text(comparison.compare, verdict.arm) : "";
      const std::string with = arm.empty() || labels[i].empty() ? "" : " with ";
      items.push_back({labels[i] + with + arm, &verdict});
    }
  return items;
}

// "MLP (−22.9 %) and CNN (−40.3 %)": the items with this kind of verdict.
std::string listed(const std::vector<Item>& items, VerdictKind kind) {
  std::vector<std::string> names;
  for (const Item& item : items) {
    if (item.verdict->kind != kind) continue;
    const std::string effect = item.verdict->ci95 ? effect_text(*item.verdict) : "diverged";
    names.push_back(item.name + (kind == VerdictKind::no_change ? "" : " (" + effect + ")"));
  }
  return some_of(names, most_items);
}

// "Training time improves for MLP (−22.9 %) and does not change for CNN."; empty without a decision.
std::string decided_sentence(const Comparison& comparison, MetricKind kind) {
  const std::vector<Item> items = items_on(comparison, published_metric(kind).name);
  std::vector<std::string> clauses;
  for (const auto& [verdict, verb] :
       {std::pair(VerdictKind::improves, "improves"), std::pair(VerdictKind::no_change, "does not change"),
        std::pair(VerdictKind::deteriorates, "deteriorates")})
    if (const std::string names = listed(items, verdict); !names.empty())
      clauses.push_back(fmt::format("{} for {}", verb, names));
  return clauses.empty() ? "" : fmt::format("{} {}.", upper_first(name_of(kind)), all_of(clauses));
}

// "Other metrics that deteriorate: test accuracy of CNN (−3.00 pp)."
std::string worse_elsewhere(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) {
    if (metric.published) continue;
    const std::string items = listed(items_on(comparison, metric.name), VerdictKind::deteriorates);
    if (!items.empty()) names.push_back(lower_first(metric.title) + " of " + items);
  }
  return names.empty() ? "" : fmt::format("Other metrics that deteriorate: {}.", joined(names, {}, "; "));
}

// Verdicts of the table that are not decided for one kind of reason.
struct Undecided {
  std::set<std::string> texts;     // of the reasons
  std::vector<std::string> items;  // "training time of MLP"
  std::set<std::int64_t> seeds;    // that are needed
};

std::string why(ReasonKind kind, const Undecided& undecided) {
  if (kind == ReasonKind::few_seeds)
    return "more seeds are needed, about " + counted_range(undecided.seeds, "") + " in total";
  if (kind == ReasonKind::planned_runs) return "planned runs are not finished";
  if (kind == ReasonKind::broken) return "the parity check found another training";
  const std::string texts = some_of({undecided.texts.begin(), undecided.texts.end()}, most_reasons);
  return texts.empty() ? "the test does not decide" : texts;
}

// "Not decided: loss of CNN (planned runs are not finished)", by reason, the one with the most verdicts first.
std::string undecided_sentence(const Comparison& comparison) {
  std::vector<std::pair<ReasonKind, Undecided>> all;
  for (const MetricKind kind : table_kinds)
    for (const Item& item : items_on(comparison, published_metric(kind).name)) {
      if (is_decided(item.verdict->kind)) continue;
      Undecided& same = value_of_key(all, item.verdict->reason.kind);
      same.texts.insert(item.verdict->reason.text);
      same.items.push_back(name_of(kind) + with_label(" of ", item.name));
      same.seeds.insert(item.verdict->seeds_needed.value_or(0));
    }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const auto& one) { return one.second.items.size(); });
  const auto text = [](const auto& one) {
    return fmt::format("{} ({})", some_of(one.second.items, most_items), why(one.first, one.second));
  };
  return all.empty() ? "" : "Not decided: " + joined(all, text, "; ") + ".";
}

// "Weakened: 3 verdicts REPLACED, 8 verdicts EXPLORATORY." over all metrics; empty without marks.
std::string weakened(const Comparison& comparison) {
  std::map<std::string, int> counts;
  for (const Cell& cell : comparison.cells)
    for (const Verdict& verdict : cell.verdicts)
      for (const std::string& mark : marks_of(verdict.caveats)) ++counts[mark];
  const auto text = [](const auto& one) { return counted(one.second, "verdict") + " " + one.first; };
  return counts.empty() ? "" : "Weakened: " + joined(counts, text) + ".";
}

}  // namespace

std::vector<std::string> answer_paragraphs(const Comparison& comparison) {
  if (!has_verdicts(comparison)) return {no_verdicts_text(comparison)};
  std::vector<std::string> quality{decided_sentence(comparison, MetricKind::accuracy),
                                   decided_sentence(comparison, MetricKind::loss),
                                   worse_elsewhere(comparison)};
  std::erase(quality, "");
  std::vector<std::string> paragraphs{decided_sentence(comparison, MetricKind::time),
                                      as_one_paragraph(quality), undecided_sentence(comparison),
                                      weakened(comparison)};
  std::erase(paragraphs, "");
  if (paragraphs.empty()) paragraphs.emplace_back("No model has validation metrics or training times.");
  paragraphs.front().insert(0, comparison.experiment.empty() ? "" : comparison.experiment + ": ");
  return paragraphs;
}

std::string as_one_paragraph(const std::vector<std::string>& paragraphs) {
  return joined(paragraphs, {}, " ");
}

}  // namespace trainyard::reports
