// The sentences of the answer: which models get faster, what happens to accuracy and loss, what is not decided.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/names.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

constexpr std::size_t most_arms = 2;        // with a sentence of their own
constexpr std::size_t most_reasons = 3;     // in a sentence that counts results by reason
constexpr std::size_t longest_items = 140;  // in bytes: longer lists of names become counts

// The cells of one arm and metric, by outcome.
struct Outcomes {
  std::set<std::size_t> better, same, worse, open;
  std::map<std::size_t, const Verdict*> verdicts;

  bool any() const { return !verdicts.empty(); }
};

Outcomes outcomes_of(const Comparison& comparison, const std::string& arm, const std::string& metric) {
  Outcomes outcomes;
  for (std::size_t i = 0; i < comparison.cells.size(); ++i) {
    const Verdict* verdict = comparison.cells[i].find(arm, metric);
    if (verdict == nullptr) continue;
    outcomes.verdicts[i] = verdict;
    (verdict->word == VerdictKind::improves       ? outcomes.better
     : verdict->word == VerdictKind::no_change    ? outcomes.same
     : verdict->word == VerdictKind::deteriorates ? outcomes.worse
                                                  : outcomes.open)
        .insert(i);
  }
  return outcomes;
}

std::vector<double> sizes_of(const Outcomes& outcomes, const std::set<std::size_t>& cells) {
  std::vector<double> sizes;
  for (const std::size_t cell : cells)
    if (const Verdict& verdict = *outcomes.verdicts.at(cell); verdict.estimate)
      sizes.push_back(std::abs(change_of(verdict, 0.95).value));
  return sizes;
}

// These changes without sign, in percent: "41", "28 – 41"; empty if none has a number.
std::string percent_range(const std::vector<double>& sizes) {
  if (sizes.empty()) return "";
  const auto [low, high] = std::ranges::minmax(sizes);
  const int decimals = low < 10 ? 1 : 0;
  const std::string first = fixed(low, decimals);
  const std::string last = fixed(high, decimals);
  return first == last ? first : fmt::format("{} – {}", first, last);
}

// " (95 % interval: 35 – 56 %)" for a single cell.
std::string interval_of(const Outcomes& outcomes, const std::set<std::size_t>& cells) {
  if (cells.size() != 1) return "";
  const Verdict& verdict = *outcomes.verdicts.at(*cells.begin());
  if (!verdict.estimate) return "";
  const Interval interval = change_of(verdict, 0.95).interval;
  double low = interval.low;
  double high = interval.high;
  if (change_of(verdict, 0.95).value < 0) {
    low = -interval.high;
    high = -interval.low;
  }
  const int decimals = std::min(std::abs(low), std::abs(high)) < 10 || high - low < 2 ? 1 : 0;
  return fmt::format(" (95 % interval: {} – {} %)", fixed(low, decimals), fixed(high, decimals));
}

void add_sentence(std::string& text, const std::string& sentence) {
  if (!sentence.empty()) text += (text.empty() ? "" : " ") + sentence + ".";
}

// " of MLP", " of both models"; empty if there is only one cell.
std::string of_cells(const CellNames& names, const std::set<std::size_t>& cells) {
  return names.size() == 1 ? "" : " of " + names.text(cells);
}

// Which models get faster?

// "With ddp on two devices, both models train faster: an epoch takes 30 – 40 % less time".
std::string time_sentence(const Outcomes& times, const std::string& arm, const CellNames& names) {
  std::vector<std::string> clauses;
  const int outcomes = int{!times.better.empty()} + int{!times.worse.empty()} + int{!times.same.empty()};
  const auto add = [&](const std::set<std::size_t>& cells, const char* faster, const char* less) {
    if (cells.empty()) return;
    const std::string which = names.text(cells);
    std::string clause = which.empty() ? "training is" : which + (cells.size() == 1 ? " trains" : " train");
    clause += std::string(" ") + faster;
    if (const std::string range = percent_range(sizes_of(times, cells)); !range.empty())
      clause += outcomes == 1
                    ? fmt::format(": an epoch takes {} % {} time{}", range, less, interval_of(times, cells))
                    : fmt::format(" ({} % {} time per epoch)", range, less);
    clauses.push_back(clause);
  };
  add(times.better, "faster", "less");
  add(times.worse, "slower", "more");
  if (!times.same.empty())
    clauses.push_back(
        fmt::format("the training time{} stays within the margin", of_cells(names, times.same)));
  return clauses.empty() ? "" : fmt::format("With {}, {}", arm, all_of(clauses));
}

// With many arms: "In 10 comparisons, training is faster in 8 (40 % less time per epoch: …) and is slower in 2 (…)".
std::string time_summary(const Comparison& comparison, const CellNames& names) {
  struct Side {
    std::vector<std::string> cases;
    std::vector<double> sizes;
  };
  Side faster, slower, same;
  std::size_t total = 0;
  for (const std::string& arm : arms_of(comparison)) {
    const Outcomes times = outcomes_of(comparison, arm, published_metric(MetricKind::time).name);
    const std::string name = value_text(comparison.compare, arm);
    const auto add = [&](const std::set<std::size_t>& cells, Side& side) {
      for (const std::size_t cell : cells)
        side.cases.push_back(names.size() == 1 ? name : names.text({cell}) + " with " + name);
      const std::vector<double> sizes = sizes_of(times, cells);
      side.sizes.insert(side.sizes.end(), sizes.begin(), sizes.end());
    };
    add(times.better, faster);
    add(times.worse, slower);
    add(times.same, same);
    total += times.verdicts.size();
  }
  std::vector<std::string> clauses;
  const auto say = [&](const Side& side, const std::string& verb, const char* less) {
    if (side.cases.empty()) return;
    const std::string range = *less == '\0' ? "" : percent_range(side.sizes);
    const std::string size = range.empty() ? "" : fmt::format("{} % {} time per epoch", range, less);
    const std::string cases = some_of(side.cases, most_names);
    if (names.size() == 1)
      clauses.push_back(verb + " with " + cases + (size.empty() ? "" : " (" + size + ")"));
    else
      clauses.push_back(
          fmt::format("{} in {} ({}{}{})", verb, side.cases.size(), size, size.empty() ? "" : ": ", cases));
  };
  say(faster, "is faster", "less");
  say(slower, "is slower", "more");
  say(same, "stays within the margin", "");
  if (clauses.empty()) return "";
  return (names.size() == 1 ? "Training" + with_label(" of ", names.text({0})) + " "
                            : fmt::format("In {} comparisons, training ", total)) +
         all_of(clauses);
}

std::string speed_sentences(const Comparison& comparison, const CellNames& names) {
  const std::vector<std::string> arms = arms_of(comparison);
  std::string text;
  if (arms.size() > most_arms) {
    add_sentence(text, time_summary(comparison, names));
  } else {
    for (const std::string& arm : arms)
      add_sentence(text, time_sentence(outcomes_of(comparison, arm, published_metric(MetricKind::time).name),
                                       arm_text(comparison, arm), names));
  }
  return text.empty() ? "No training time is decided." : text;
}

// Did accuracy suffer anywhere?

// "+1.20 pp", "+1.20 pp to +3.40 pp": the smallest and the largest effect.
std::string effect_range(const Outcomes& outcomes, const std::set<std::size_t>& cells) {
  std::vector<const Verdict*> known;
  for (const std::size_t cell : cells)
    if (outcomes.verdicts.at(cell)->estimate) known.push_back(outcomes.verdicts.at(cell));
  if (known.empty()) return "diverged";
  std::ranges::stable_sort(known, {},
                           [](const Verdict* verdict) { return std::abs(verdict->estimate->mean); });
  const std::string first = effect_text(*known.front());
  const std::string last = effect_text(*known.back());
  return first == last ? first : first + " to " + last;
}

const char* word_of(MetricKind kind) {
  return kind == MetricKind::accuracy ? "accuracy" : kind == MetricKind::loss ? "loss" : "training time";
}

const char* plural_of(MetricKind kind) {
  return kind == MetricKind::accuracy ? "accuracies" : kind == MetricKind::loss ? "losses" : "training times";
}

// Changes of accuracy and loss over all arms: "accuracy of CNN with ddp (−3.00 pp)".
struct Quality {
  std::vector<std::string> worse, better;
  std::vector<std::string> worse_elsewhere;  // in metrics outside the table
  std::set<MetricKind> kinds;
  std::size_t count_elsewhere = 0;
  std::size_t decided = 0, open = 0;
};

Quality quality_of(const Comparison& comparison, const CellNames& names) {
  Quality quality;
  const std::vector<std::string> arms = arms_of(comparison);
  for (const Metric& metric : metrics()) {
    if (metric.published && metric.kind == MetricKind::time) continue;
    for (const std::string& arm : arms) {
      const Outcomes outcomes = outcomes_of(comparison, arm, metric.name);
      const auto add = [&](const std::set<std::size_t>& cells, std::vector<std::string>& to) {
        if (cells.empty()) return;
        to.push_back((metric.published ? word_of(metric.kind) : lower_first(metric.title)) +
                     of_cells(names, cells) +
                     (arms.size() == 1 ? "" : " with " + value_text(comparison.compare, arm)) + " (" +
                     effect_range(outcomes, cells) + ")");
      };
      add(outcomes.worse, metric.published ? quality.worse : quality.worse_elsewhere);
      if (!metric.published) {
        quality.count_elsewhere += outcomes.worse.size();
        continue;
      }
      add(outcomes.better, quality.better);
      if (outcomes.any()) quality.kinds.insert(metric.kind);
      quality.open += outcomes.open.size();
      quality.decided += outcomes.verdicts.size() - outcomes.open.size();
    }
  }
  return quality;
}

std::string quality_sentences(const Comparison& comparison, const CellNames& names) {
  const Quality quality = quality_of(comparison, names);
  const std::string elsewhere = some_of(quality.worse_elsewhere);
  std::string text;
  if (!quality.worse.empty()) {
    const std::size_t more = quality.count_elsewhere;
    add_sentence(text,
                 "Worse by more than the margin: " + some_of(quality.worse) +
                     (more == 0 ? "" : fmt::format(", and {} in other metrics", counted(more, "result"))));
  } else {
    std::vector<std::string> kinds;
    for (const MetricKind kind : {MetricKind::accuracy, MetricKind::loss})
      if (quality.kinds.contains(kind)) kinds.emplace_back(word_of(kind));
    const std::string either = fmt::format("{}", fmt::join(kinds, " or "));
    const std::string found =
        quality.decided == 0
            ? "No " + either + " is decided"
            : fmt::format("{} {} {} by more than the margin", quality.open > 0 ? "No decided" : "No", either,
                          quality.better.empty() ? "changes" : "gets worse");
    if (!kinds.empty())
      add_sentence(text, found + with_label(", but other metrics get worse: ", elsewhere));
    else
      add_sentence(text, with_label("Worse by more than the margin: ", elsewhere));
  }
  add_sentence(text, with_label("Better: ", some_of(quality.better)));
  return text;
}

// What is not decided, and why?

constexpr std::array<MetricKind, 3> table_kinds{MetricKind::accuracy, MetricKind::loss, MetricKind::time};

// Verdicts that are not decided for one kind of reason.
struct Undecided {
  ReasonKind kind = ReasonKind::none;
  std::set<std::string> texts = {};                                               // of the reasons
  std::map<std::string, std::map<MetricKind, std::set<std::size_t>>> cells = {};  // by arm and metric
  std::size_t count = 0;
  int fewest_seeds = 0, most_seeds = 0;
};

// The reason of all these verdicts, after "because".
std::string why(const Undecided& undecided) {
  const std::string only = undecided.texts.size() == 1 ? *undecided.texts.begin() : "";
  switch (undecided.kind) {
    case ReasonKind::few_pairs:
      return "there are too few seeds: " + (only.empty() ? "at least 3 pairs are needed" : only);
    case ReasonKind::few_seeds:
      return undecided.fewest_seeds == undecided.most_seeds
                 ? fmt::format("more seeds are needed (about {} per arm)", undecided.most_seeds)
                 : fmt::format("more seeds are needed (about {} – {} per arm)", undecided.fewest_seeds,
                               undecided.most_seeds);
    case ReasonKind::narrow_margin:
      return "even 100 seeds would not decide at this margin";
    case ReasonKind::diverged:
      return "the loss is not finite in both arms";
    case ReasonKind::planned_runs:
      return "planned runs are not finished";
    case ReasonKind::placement:
      return "times are useless with " + (only.empty() ? "more ranks than devices" : only);
    case ReasonKind::no_values:
      return only.empty() ? "an arm has no values" : only;
    case ReasonKind::not_comparable:
      return "the arms are not comparable" + with_label(": ", only);
    case ReasonKind::broken:
      return "the parity check found another training";
    case ReasonKind::none:
    case ReasonKind::constant:
    case ReasonKind::no_ratio:
      break;
  }
  return only.empty() ? "the test does not decide" : only;
}

// By reason, the one with the most verdicts first.
std::vector<Undecided> undecided_of(const Comparison& comparison) {
  std::vector<Undecided> all;
  for (const std::string& arm : arms_of(comparison))
    for (const MetricKind kind : table_kinds) {
      const Outcomes outcomes = outcomes_of(comparison, arm, published_metric(kind).name);
      for (const std::size_t cell : outcomes.open) {
        const Verdict& verdict = *outcomes.verdicts.at(cell);
        auto known = std::ranges::find(all, verdict.reason.kind, &Undecided::kind);
        if (known == all.end()) known = all.insert(all.end(), {.kind = verdict.reason.kind});
        known->texts.insert(verdict.reason.text);
        known->cells[arm][kind].insert(cell);
        ++known->count;
        const int seeds = verdict.seeds_needed.value_or(0);
        known->fewest_seeds = known->fewest_seeds == 0 ? seeds : std::min(known->fewest_seeds, seeds);
        known->most_seeds = std::max(known->most_seeds, seeds);
      }
    }
  std::ranges::stable_sort(all, std::ranges::greater(), &Undecided::count);
  return all;
}

// Number of verdicts of an arm (empty: of all arms) on these metrics.
std::size_t count_of(const Comparison& comparison, const std::string& wanted,
                     std::span<const MetricKind> kinds) {
  std::size_t count = 0;
  for (const std::string& arm : arms_of(comparison))
    if (wanted.empty() || arm == wanted)
      for (const MetricKind kind : kinds)
        count += outcomes_of(comparison, arm, published_metric(kind).name).verdicts.size();
  return count;
}

// "all results", "training time of MLP", "accuracy and loss of both models".
std::string items_of(const Comparison& comparison, const std::string& arm,
                     const std::map<MetricKind, std::set<std::size_t>>& kinds, const CellNames& names) {
  std::size_t open = 0;
  std::vector<std::pair<std::vector<std::string>, std::set<std::size_t>>> by_cells;
  for (const auto& [kind, cells] : kinds) {
    open += cells.size();
    const auto known = std::ranges::find(by_cells, cells,
                                         &std::pair<std::vector<std::string>, std::set<std::size_t>>::second);
    if (known == by_cells.end())
      by_cells.push_back({{word_of(kind)}, cells});
    else
      known->first.emplace_back(word_of(kind));
  }
  if (open == count_of(comparison, arm, table_kinds)) return "all results";
  std::vector<std::string> items;
  items.reserve(by_cells.size());
  for (const auto& [words, cells] : by_cells) items.push_back(all_of(words) + of_cells(names, cells));
  return all_of(items);
}

// The verdicts with their names, or if that is long their numbers: "5 of 12 accuracies and 3 of 12 losses".
std::string items_of(const Comparison& comparison, const Undecided& undecided, const CellNames& names) {
  std::vector<std::pair<std::string, std::vector<std::string>>> arms_by_items;
  std::map<MetricKind, std::size_t> counts;
  const std::vector<std::string> arms = arms_of(comparison);
  for (const std::string& arm : arms) {
    const auto found = undecided.cells.find(arm);
    if (found == undecided.cells.end()) continue;
    for (const auto& [kind, cells] : found->second) counts[kind] += cells.size();
    const std::string items = items_of(comparison, arm, found->second, names);
    auto known =
        std::ranges::find(arms_by_items, items, &std::pair<std::string, std::vector<std::string>>::first);
    if (known == arms_by_items.end()) known = arms_by_items.insert(known, {items, {}});
    known->second.push_back(value_text(comparison.compare, arm));
  }
  std::vector<std::string> texts;
  texts.reserve(arms_by_items.size());
  for (const auto& [items, with] : arms_by_items)
    texts.push_back(arms.size() > 1 ? items + " with " + some_of(with) : items);
  if (std::string text = all_of(texts); text.size() <= longest_items) return text;
  texts.clear();
  for (const MetricKind kind : table_kinds)
    if (counts[kind] > 0)
      texts.push_back(fmt::format("{} of {} {}", counts[kind], count_of(comparison, "", std::array{kind}),
                                  plural_of(kind)));
  return all_of(texts);
}

// "3 training times", or "4 results" on several metrics.
std::string counts_of(const Undecided& undecided) {
  std::set<MetricKind> kinds;
  for (const auto& [arm, cells] : undecided.cells)
    for (const auto& [kind, open] : cells) kinds.insert(kind);
  if (kinds.size() > 1) return counted(undecided.count, "result");
  const MetricKind kind = *kinds.begin();
  return fmt::format("{} {}", undecided.count, undecided.count == 1 ? word_of(kind) : plural_of(kind));
}

// "6 results because planned runs are not finished and 2 training times because …".
std::string counts_by_reason(std::span<const Undecided> some) {
  std::vector<std::string> parts;
  std::size_t others = 0;
  for (const Undecided& one : some) {
    if (parts.size() < most_reasons)
      parts.push_back(counts_of(one) + " because " + why(one));
    else
      others += one.count;
  }
  if (others > 0) parts.push_back(fmt::format("{} for other reasons", counted(others, "result")));
  return all_of(parts);
}

std::string undecided_sentences(const Comparison& comparison, const CellNames& names) {
  const std::vector<Undecided> all = undecided_of(comparison);
  if (all.empty()) return "";
  const auto named = [&](const Undecided& one) {
    return fmt::format("{}, because {}", items_of(comparison, one, names), why(one));
  };
  std::string text;
  add_sentence(text, "Not decided: " + named(all.front()));
  if (all.size() == 2) add_sentence(text, "Also not decided: " + named(all.back()));
  if (all.size() > 2) add_sentence(text, "Also not decided: " + counts_by_reason(std::span(all).subspan(1)));
  return text;
}

// The only sentence if there is no decision at all; else empty.
std::string nothing_decided(const Comparison& comparison) {
  const std::vector<Undecided> all = undecided_of(comparison);
  std::size_t open = 0;
  for (const Undecided& one : all) open += one.count;
  if (all.empty() || open < count_of(comparison, "", table_kinds)) return "";
  if (all.size() == 1) return fmt::format("Nothing is decided, because {}.", why(all.front()));
  return fmt::format("Nothing is decided: {}.", counts_by_reason(all));
}

// "Weakened: 3 verdicts are marked REPLACED, 8 EXPLORATORY." over all metrics; empty without marks.
std::string weakened(const Comparison& comparison) {
  std::map<std::string, std::size_t> counts;
  for (const CellVerdicts& judged : comparison.cells)
    for (const Verdict& verdict : judged.verdicts)
      for (const std::string& mark : marks_of(verdict.caveats)) ++counts[mark];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [mark, count] : counts)
    parts.push_back(parts.empty()
                        ? counted(count, "verdict") + (count == 1 ? " is" : " are") + " marked " + mark
                        : fmt::format("{} {}", count, mark));
  return parts.empty() ? "" : "Weakened: " + joined(parts, {}, ", ") + ".";
}

}  // namespace

std::vector<std::string> answer_paragraphs(const Comparison& comparison) {
  if (!has_verdicts(comparison)) return {no_verdicts_text(comparison)};
  const CellNames names(comparison);
  std::vector<std::string> paragraphs{nothing_decided(comparison)};
  if (paragraphs.front().empty())
    paragraphs = {speed_sentences(comparison, names), quality_sentences(comparison, names),
                  undecided_sentences(comparison, names)};
  paragraphs.push_back(weakened(comparison));
  std::erase(paragraphs, "");
  if (!comparison.experiment.empty()) paragraphs.front() = comparison.experiment + ": " + paragraphs.front();
  return paragraphs;
}

std::string as_one_paragraph(const std::vector<std::string>& paragraphs) {
  return joined(paragraphs, {}, " ");
}

}  // namespace trainyard::reports
