#include "reports/content/answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/content/published_study.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

constexpr std::size_t most_names = 4;
constexpr std::size_t most_arms = 4;     // with a sentence of their own
constexpr std::size_t most_reasons = 4;  // with a sentence of their own

const Metric& published_metric(MetricKind kind) {
  return *std::ranges::find_if(metrics(),
                               [&](const Metric& metric) { return metric.published && metric.kind == kind; });
}

// Values of the compared axis in the order of the cells.
std::vector<std::string> arms_of(const Comparison& comparison) {
  std::vector<std::string> arms;
  for (const CellVerdicts& judged : comparison.cells)
    for (const Arm& arm : judged.cell.arms)
      if (std::ranges::find(arms, arm.value) == arms.end()) arms.push_back(arm.value);
  return arms;
}

// "two devices", "four ranks on two devices"; empty if the runs of the arm differ or have one device.
std::string devices_text(const Comparison& comparison, const std::string& arm) {
  std::set<std::string> texts;
  for (const CellVerdicts& judged : comparison.cells)
    for (const Arm& one : judged.cell.arms) {
      if (one.value != arm) continue;
      for (const Observation& observation : one.runs) {
        const auto ranks = static_cast<std::size_t>(observation.run->replicas * observation.run->stages);
        const std::size_t devices = observation.launched == nullptr ? 0 : observation.launched->devices;
        texts.insert(ranks <= 1 ? ""
                     : devices == 0 || devices == ranks
                         ? counted_in_words(ranks, "device")
                         : counted_in_words(ranks, "rank") + " on " + counted_in_words(devices, "device"));
      }
    }
  return texts.size() == 1 ? *texts.begin() : "";
}

// "2 threads", "learning rate 0.1", "ddp": a value of the compared axis.
std::string value_text(const experiments::Compare& compare, const std::string& value) {
  static const std::set<std::string> counts{"threads", "epochs", "replicas", "stages", "micro_batches"};
  const std::string& axis = compare.axis;
  if (axis == "strategy" || axis == "model" || axis == "group") return value;
  if (!counts.contains(axis)) return with_spaces(axis) + " " + value;
  std::string noun = with_spaces(axis);
  if (value == "1") noun = axis == "micro_batches" ? "micro-batch" : noun.substr(0, noun.size() - 1);
  return value + " " + noun;
}

std::string arm_text(const Comparison& comparison, const std::string& arm) {
  const std::string text = value_text(comparison.compare, arm);
  const std::string devices =
      comparison.compare.axis == "strategy" ? devices_text(comparison, arm) : std::string();
  return devices.empty() ? text : text + " on " + devices;
}

// The cells of a comparison in sentences: "MLP", "both models", "four of six models (A, B, C and D)".
class CellNames {
 public:
  explicit CellNames(const Comparison& comparison) {
    std::set<std::string> models;
    for (const CellVerdicts& judged : comparison.cells) {
      std::string label = judged.cell.label;
      if (judged.cell.model.empty()) {  // models are compared
        static const std::string all = "all models";
        label = label.starts_with(all + ", ") ? label.substr(all.size() + 2) : "";
      }
      labels_.push_back(label);
      models.insert(judged.cell.model);
    }
    noun_ = models.size() == labels_.size() && !models.contains("") ? "model" : "setting";
  }

  std::size_t size() const { return labels_.size(); }

  // `cells`: positions. Empty if the only cell has no name.
  std::string text(const std::set<std::size_t>& cells) const {
    if (cells.size() == 1) return labels_.at(*cells.begin());
    if (cells.size() == size())
      return size() == 2 ? fmt::format("both {}s", noun_)
                         : fmt::format("all {} {}s", in_words(size()), noun_);
    std::vector<std::string> names;
    for (const std::size_t cell : cells) names.push_back(labels_[cell]);
    return fmt::format("{} of {} {}s ({})", in_words(cells.size()), in_words(size()), noun_,
                       some_of(names, most_names));
  }

  // The same at the start of a sentence. Names keep their letters.
  std::string start(const std::set<std::size_t>& cells) const {
    return cells.size() == 1 ? text(cells) : upper_first(text(cells));
  }

  std::string all() const {
    std::set<std::size_t> cells;
    for (std::size_t i = 0; i < size(); ++i) cells.insert(i);
    return size() <= most_names ? some_of(labels_, most_names) : text(cells).substr(4);  // without "all "
  }

 private:
  std::vector<std::string> labels_;
  std::string noun_;
};

// The cells of one arm and metric, by outcome.
struct Outcomes {
  std::set<std::size_t> better, same, worse, open;
  std::map<std::size_t, const Verdict*> verdicts;

  bool any() const { return !verdicts.empty(); }
  bool moves() const { return !better.empty() || !worse.empty(); }
  bool decided() const { return moves() || !same.empty(); }
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

// The sizes of these changes without sign, in percent: "41", "28 – 41"; empty if none has a number.
std::string percent_range(const Outcomes& outcomes, const std::set<std::size_t>& cells) {
  std::vector<double> sizes;
  for (const std::size_t cell : cells)
    if (const Verdict& verdict = *outcomes.verdicts.at(cell); verdict.estimate)
      sizes.push_back(std::abs(change_of(verdict, 0.95).value));
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

// "MLP trains faster: an epoch takes 46 % less time."
std::string time_clause(const Outcomes& times, const std::set<std::size_t>& cells, bool faster,
                        const CellNames& names, bool start) {
  const std::string which = start ? names.start(cells) : names.text(cells);
  const std::string verb = which.empty() ? (start ? "Training is" : "training is")
                                         : which + (cells.size() == 1 ? " trains" : " train");
  const std::string range = percent_range(times, cells);
  const std::string epoch = range.empty() ? ""
                                          : fmt::format(": an epoch takes {} % {} time{}", range,
                                                        faster ? "less" : "more", interval_of(times, cells));
  return fmt::format("{} {}{}", verb, faster ? "faster" : "slower", epoch);
}

void add_sentence(std::string& text, const std::string& sentence) {
  if (!sentence.empty()) text += (text.empty() ? "" : " ") + sentence + ".";
}

// " of MLP", " of both models"; empty if there is only one cell.
std::string of_cells(const CellNames& names, const std::set<std::size_t>& cells, const char* word) {
  return names.size() == 1 ? "" : fmt::format(" {} {}", word, names.text(cells));
}

std::string time_sentences(const Outcomes& times, const std::string& arm, const CellNames& names) {
  std::string text;
  const std::string with = "With " + arm + ", ";
  if (!times.better.empty()) add_sentence(text, with + time_clause(times, times.better, true, names, false));
  if (!times.worse.empty())
    add_sentence(text,
                 (text.empty() ? with : "") + time_clause(times, times.worse, false, names, !text.empty()));
  if (!times.same.empty()) {
    const std::string same =
        fmt::format("training time{} stays within the margin", of_cells(names, times.same, "of"));
    add_sentence(text, (text.empty() ? with : "") + (text.empty() ? "the " + same : "The " + same));
  }
  if (text.empty()) add_sentence(text, with + "no training time is decided");
  return text;
}

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

// "Accuracy deteriorates for CNN (−3.00 pp) and stays within the margin for MLP."
std::string quality_sentence(const std::string& subject, const Outcomes& outcomes, const CellNames& names) {
  std::vector<std::string> clauses;
  const auto add = [&](const std::set<std::size_t>& cells, const std::string& verb, bool numbers) {
    if (cells.empty()) return;
    clauses.push_back(verb + of_cells(names, cells, "for") +
                      (numbers ? " (" + effect_range(outcomes, cells) + ")" : ""));
  };
  add(outcomes.worse, "deteriorates", true);
  add(outcomes.better, "improves", true);
  add(outcomes.same, "stays within the margin", false);
  if (clauses.empty()) return "";
  return subject + " " + some_of(clauses);
}

std::string quality_sentences(const Outcomes& accuracy, const Outcomes& loss, const CellNames& names) {
  std::string text;
  if (!accuracy.any() && !loss.any()) return text;
  const std::string either = !accuracy.any() ? "loss" : !loss.any() ? "accuracy" : "accuracy or loss";
  if (!accuracy.decided() && !loss.decided()) {
    add_sentence(text, "No " + either + " is decided");
    return text;
  }
  const bool all_decided = accuracy.open.empty() && loss.open.empty();
  if (!accuracy.moves() && !loss.moves() && all_decided) {
    add_sentence(text, "No " + either + " changes by more than the margin");
    return text;
  }
  if (!accuracy.moves() && !loss.moves() && accuracy.same == loss.same) {
    add_sentence(text, "Accuracy and loss stay within the margin" + of_cells(names, loss.same, "for"));
    return text;
  }
  add_sentence(text, quality_sentence("Accuracy", accuracy, names));
  add_sentence(text, quality_sentence("Loss", loss, names));
  return text;
}

// Metrics outside the table that get worse: "Also worse: test accuracy of CNN."
std::string also_worse(const Comparison& comparison, const std::string& arm, const CellNames& names) {
  std::vector<std::string> parts;
  for (const Metric& metric : metrics()) {
    if (metric.published) continue;
    const Outcomes outcomes = outcomes_of(comparison, arm, metric.name);
    if (outcomes.worse.empty()) continue;
    parts.push_back(lower_first(metric.title) + of_cells(names, outcomes.worse, "of"));
  }
  return parts.empty() ? "" : "Also worse: " + some_of(parts);
}

constexpr std::array<MetricKind, 3> table_kinds{MetricKind::accuracy, MetricKind::loss, MetricKind::time};

const char* word_of(MetricKind kind) {
  return kind == MetricKind::accuracy ? "accuracy" : kind == MetricKind::loss ? "loss" : "training time";
}

// Why a verdict decides nothing.
std::string reason_of(const Verdict& verdict) {
  switch (verdict.word) {
    case VerdictKind::broken:
      return "the parity check found another training";
    case VerdictKind::not_comparable:
      return "the arms are not comparable: " + verdict.reason;
    case VerdictKind::interim:
      return "planned runs are not finished";
    case VerdictKind::not_timed:
      return "times are useless with " + verdict.reason;
    case VerdictKind::no_data:
      return verdict.reason;
    case VerdictKind::improves:
    case VerdictKind::no_change:
    case VerdictKind::deteriorates:
    case VerdictKind::inconclusive:
      break;
  }
  if (verdict.seeds_needed) return "more seeds are needed";
  if (verdict.cannot_be_resolved) return "even 100 seeds would not decide at this margin";
  if (verdict.reason.starts_with("only ")) return "of too few seeds: " + verdict.reason;
  static const std::string diverged = "diverged: ";
  return verdict.reason.starts_with(diverged) ? verdict.reason.substr(diverged.size()) : verdict.reason;
}

// Verdicts that are not decided for one reason.
struct Undecided {
  std::string reason;
  std::map<std::string, std::map<MetricKind, std::set<std::size_t>>> cells;  // by arm and metric
  int fewest_seeds = 0, most_seeds = 0;
};

// "all results", "training time of MLP", "accuracy and loss of both models".
std::vector<std::string> undecided_items(const Comparison& comparison, const std::string& arm,
                                         const std::map<MetricKind, std::set<std::size_t>>& kinds,
                                         const CellNames& names) {
  std::size_t total = 0;
  for (const MetricKind kind : table_kinds)
    total += outcomes_of(comparison, arm, published_metric(kind).name).verdicts.size();
  std::size_t open = 0;
  std::vector<std::pair<std::vector<std::string>, std::set<std::size_t>>> by_cells;
  for (const auto& [kind, cells] : kinds) {
    open += cells.size();
    const auto known = std::ranges::find_if(by_cells, [&](const auto& one) { return one.second == cells; });
    if (known == by_cells.end())
      by_cells.push_back({{word_of(kind)}, cells});
    else
      known->first.emplace_back(word_of(kind));
  }
  if (open == total) return {"all results"};
  std::vector<std::string> items;
  for (const auto& [words, cells] : by_cells) items.push_back(some_of(words) + of_cells(names, cells, "of"));
  return items;
}

std::string undecided_sentence(const Comparison& comparison, const Undecided& undecided,
                               const CellNames& names, bool several_arms, bool first) {
  std::vector<std::pair<std::string, std::vector<std::string>>> arms_by_items;
  for (const std::string& arm : arms_of(comparison)) {
    const auto found = undecided.cells.find(arm);
    if (found == undecided.cells.end()) continue;
    const std::string items = some_of(undecided_items(comparison, arm, found->second, names));
    const auto known =
        std::ranges::find(arms_by_items, items, &std::pair<std::string, std::vector<std::string>>::first);
    const std::string name = value_text(comparison.compare, arm);
    if (known == arms_by_items.end())
      arms_by_items.push_back({items, {name}});
    else
      known->second.push_back(name);
  }
  std::vector<std::string> texts;
  for (const auto& [items, arms] : arms_by_items)
    texts.push_back(several_arms ? items + " with " + some_of(arms) : items);
  std::string seeds;
  if (undecided.most_seeds > 0)
    seeds = undecided.fewest_seeds == undecided.most_seeds
                ? fmt::format(" (about {})", undecided.most_seeds)
                : fmt::format(" (about {} – {})", undecided.fewest_seeds, undecided.most_seeds);
  return fmt::format("{}: {}, because {}{}", first ? "Not decided" : "Not decided either", some_of(texts),
                     undecided.reason, seeds);
}

std::vector<Undecided> undecided_of(const Comparison& comparison) {
  std::vector<Undecided> all;
  for (const std::string& arm : arms_of(comparison))
    for (const MetricKind kind : table_kinds) {
      const Outcomes outcomes = outcomes_of(comparison, arm, published_metric(kind).name);
      for (const std::size_t cell : outcomes.open) {
        const Verdict& verdict = *outcomes.verdicts.at(cell);
        const std::string reason = reason_of(verdict);
        auto known = std::ranges::find(all, reason, &Undecided::reason);
        if (known == all.end()) known = all.insert(all.end(), {reason, {}, 0, 0});
        known->cells[arm][kind].insert(cell);
        if (!verdict.seeds_needed || verdict.word != VerdictKind::inconclusive) continue;
        const int seeds = *verdict.seeds_needed;
        known->fewest_seeds = known->fewest_seeds == 0 ? seeds : std::min(known->fewest_seeds, seeds);
        known->most_seeds = std::max(known->most_seeds, seeds);
      }
    }
  return all;
}

std::string undecided_sentences(const Comparison& comparison, const CellNames& names) {
  const std::vector<Undecided> all = undecided_of(comparison);
  const bool several_arms = arms_of(comparison).size() > 1;
  std::string text;
  const std::size_t shown = all.size() <= most_reasons ? all.size() : most_reasons - 1;
  for (std::size_t i = 0; i < shown; ++i)
    add_sentence(text, undecided_sentence(comparison, all[i], names, several_arms, i == 0));
  if (shown < all.size())
    add_sentence(text, fmt::format("Other results are not decided for {}",
                                   counted_in_words(all.size() - shown, "further reason")));
  return text;
}

std::string arm_sentences(const Comparison& comparison, const std::string& arm, const CellNames& names) {
  const auto outcomes = [&](MetricKind kind) {
    return outcomes_of(comparison, arm, published_metric(kind).name);
  };
  const Outcomes times = outcomes(MetricKind::time);
  const Outcomes accuracy = outcomes(MetricKind::accuracy);
  const Outcomes loss = outcomes(MetricKind::loss);
  if (!times.decided() && !accuracy.decided() && !loss.decided()) return "";
  std::string text = time_sentences(times, arm_text(comparison, arm), names);
  if (const std::string quality = quality_sentences(accuracy, loss, names); !quality.empty())
    text += " " + quality;
  add_sentence(text, also_worse(comparison, arm, names));
  return text;
}

// With many arms: one sentence per metric over all arms.
std::string summary_sentences(const Comparison& comparison, const CellNames& names) {
  std::string text;
  for (const MetricKind kind : {MetricKind::time, MetricKind::accuracy, MetricKind::loss}) {
    std::size_t total = 0, same = 0, open = 0;
    std::vector<std::string> better, worse;
    for (const std::string& arm : arms_of(comparison)) {
      const Outcomes outcomes = outcomes_of(comparison, arm, published_metric(kind).name);
      const std::string name = value_text(comparison.compare, arm);
      const auto add = [&](const std::set<std::size_t>& cells, std::vector<std::string>& to) {
        for (const std::size_t cell : cells)
          to.push_back(names.size() == 1 ? name : names.text({cell}) + " with " + name);
      };
      add(outcomes.better, better);
      add(outcomes.worse, worse);
      same += outcomes.same.size();
      open += outcomes.open.size();
      total += outcomes.verdicts.size();
    }
    if (total == 0) continue;
    std::vector<std::string> clauses;
    const auto add = [&](const std::string& verb, const std::vector<std::string>& cases) {
      if (!cases.empty()) clauses.push_back(fmt::format("{} in {} ({})", verb, cases.size(), some_of(cases)));
    };
    add("deteriorates", worse);
    add("improves", better);
    if (same > 0) clauses.push_back(fmt::format("stays within the margin in {}", same));
    if (open > 0) clauses.push_back(fmt::format("is not decided in {}", open));
    add_sentence(text,
                 fmt::format("{} {} of {} comparisons", upper_first(word_of(kind)), some_of(clauses), total));
  }
  return text;
}

}  // namespace

std::string subtitle(const Comparison& comparison) {
  const experiments::Compare& compare = comparison.compare;
  const std::vector<std::string> arms = arms_of(comparison);
  const std::string on = CellNames(comparison).all();
  const std::string what =
      arms.empty() ? "compared with " + compare.baseline : some_of(arms) + " against " + compare.baseline;
  return fmt::format("Effect of {} ({}){}{}",
                     compare.axis == "group" ? "the choice of runs" : with_spaces(compare.axis), what,
                     on.empty() ? "" : " on ", on);
}

std::string answer_text(const Comparison& comparison) {
  if (!has_verdicts(comparison)) return no_verdicts_text(comparison);
  const CellNames names(comparison);
  const std::vector<std::string> arms = arms_of(comparison);
  std::string text;
  if (arms.size() > most_arms) {
    text = summary_sentences(comparison, names);
  } else {
    std::vector<std::string> without;
    for (const std::string& arm : arms) {
      const std::string sentences = arm_sentences(comparison, arm, names);
      if (sentences.empty()) without.push_back(arm_text(comparison, arm));
      text += (text.empty() || sentences.empty() ? "" : " ") + sentences;
    }
    if (!without.empty()) add_sentence(text, "With " + some_of(without) + ", nothing is decided");
  }
  if (const std::string open = undecided_sentences(comparison, names); !open.empty()) text += " " + open;
  return (comparison.experiment.empty() ? "" : comparison.experiment + ": ") + text;
}

std::string shape_explanation(const Comparison& comparison) {
  const auto margin = [&](MetricKind kind) {
    return margin_of(published_metric(kind), comparison.compare.margins);
  };
  return fmt::format(
      "Models by verdict: each model is in the row of its verdict on validation accuracy ({}), validation "
      "loss "
      "({}) and training time per epoch ({}).",
      margin(MetricKind::accuracy), margin(MetricKind::loss), margin(MetricKind::time));
}

namespace {

// "3", "3 – 5"; empty without values.
std::string range_of(const std::set<std::int64_t>& values) {
  if (values.empty()) return "";
  if (values.size() == 1) return std::to_string(*values.begin());
  return fmt::format("{} – {}", *values.begin(), *values.rbegin());
}

std::string counted_range(const std::set<std::int64_t>& values, const std::string& noun) {
  if (values.empty()) return "";
  return range_of(values) + " " + noun + (*values.rbegin() == 1 ? "" : "s");
}

std::string value_in(const std::vector<std::pair<std::string, std::string>>& provenance, const char* name) {
  const auto found = std::ranges::find(provenance, name, &std::pair<std::string, std::string>::first);
  return found == provenance.end() ? "" : found->second;
}

// "a, b", without empty texts.
std::string comma(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() || text.empty() ? "" : ", ") + text;
  return all;
}

std::string with_label(const std::string& label, const std::string& text) {
  return text.empty() ? "" : label + text;
}

// "5 seeds per arm, 3 epochs".
std::string sizes_text(const std::vector<Comparison>& comparisons) {
  std::set<std::int64_t> seeds;
  std::set<std::int64_t> epochs;
  bool paired = true;
  for (const Comparison& comparison : comparisons) {
    paired = paired && comparison.compare.pair == std::vector<std::string>{"seed"};
    for (const CellVerdicts& judged : comparison.cells) {
      const auto add = [&](const Arm& arm) {
        if (!arm.runs.empty()) seeds.insert(static_cast<std::int64_t>(arm.runs.size()));
        for (const Observation& observation : arm.runs) epochs.insert(observation.run->epochs);
      };
      add(judged.cell.baseline);
      std::ranges::for_each(judged.cell.arms, add);
    }
  }
  const std::string runs = counted_range(seeds, paired ? "seed" : "run");
  return comma({runs.empty() ? "no runs" : runs + " per arm", counted_range(epochs, "epoch")});
}

std::string sentences(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    if (!text.empty()) add_sentence(all, text);
  return all;
}

}  // namespace

Answer make_answer(const ReportData& data, const std::vector<Comparison>& comparisons,
                   const std::vector<std::pair<std::string, std::string>>& provenance) {
  Answer answer;
  for (const Comparison& comparison : comparisons) answer.paragraphs.push_back(answer_text(comparison));
  answer.published = published_answers(data, comparisons);
  answer.compared = sentences({sizes_text(comparisons), with_label("Data: ", value_in(provenance, "Data")),
                               with_label("Strategies: ", value_in(provenance, "Strategies")),
                               with_label("Runs: ", value_in(provenance, "Runs"))});
  answer.machine = sentences({comma({value_in(provenance, "Host"), value_in(provenance, "Processor")}),
                              comma({with_label("trainyard ", value_in(provenance, "Release")),
                                     with_label("LibTorch ", value_in(provenance, "LibTorch"))})});
  return answer;
}

}  // namespace trainyard::reports
