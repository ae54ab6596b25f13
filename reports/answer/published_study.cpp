#include "reports/answer/published_study.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/words.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

using experiments::PublishedSource;
using experiments::PublishedVerdict;

// The words of a published effect, for a sentence and as one of our verdicts.
struct EffectWords {
  const char* effect;
  const char* words;
  VerdictKind word;
};
constexpr std::array<EffectWords, 3> effect_words{
    {{"deteriorates", "deteriorated", VerdictKind::deteriorates},
     {"improves", "improved", VerdictKind::improves},
     {"no-change", "unchanged", VerdictKind::no_change}}};

const char* metric_of(const std::string& published) {
  return published == "accuracy" ? "validation-accuracy"
         : published == "loss"   ? "validation-loss"
                                 : "train-seconds";
}

std::string words_of(const std::string& metric) {
  return metric == "time" ? "training time" : metric;
}

std::string name_of(const PublishedVerdict& verdict) {
  return title_of(verdict.model) + (verdict.arm.empty() ? "" : " (" + verdict.arm + ")");
}

// " Accuracy and loss: deteriorated for CNN, improved for VGG11, unchanged for NBoW." Metrics with the same
// verdicts share a sentence.
std::string found_text(const PublishedSource& source) {
  std::vector<std::pair<std::string, std::vector<std::string>>> metrics_by_text;
  for (const char* metric : {"time", "accuracy", "loss"}) {
    std::vector<std::string> clauses;
    for (const EffectWords& words : effect_words) {
      std::vector<std::string> names;
      for (const PublishedVerdict& verdict : source.verdicts)
        if (verdict.metric == metric && verdict.effect == words.effect) names.push_back(name_of(verdict));
      if (!names.empty()) clauses.push_back(std::string(words.words) + " for " + some_of(names, 6));
    }
    if (clauses.empty()) continue;
    const std::string text = joined(clauses);
    const auto known =
        std::ranges::find(metrics_by_text, text, &std::pair<std::string, std::vector<std::string>>::first);
    if (known == metrics_by_text.end())
      metrics_by_text.push_back({text, {words_of(metric)}});
    else
      known->second.push_back(words_of(metric));
  }
  std::string all;
  for (const auto& [text, names] : metrics_by_text) {
    all += fmt::format(" {}: {}.", upper_first(some_of(names)), text);
  }
  return all;
}

std::set<std::string> arms_with_numbers(const PublishedSource& source, const std::string& model) {
  std::set<std::string> arms;
  for (const experiments::PublishedSeries& series : source.series)
    if (series.model == model) arms.insert(series.arm);
  return arms;
}

// Our verdicts on published ones.
struct Agreement {
  int same = 0, open = 0, all = 0;
  std::vector<std::string> different;  // "accuracy of CNN with ddp (improved there, no change here)"
};

// Whether the published verdict is on this verdict of ours. `arms`: those of the publication with numbers.
bool is_on(const PublishedVerdict& published, const std::set<std::string>& arms, const Verdict& ours) {
  if (ours.metric != metric_of(published.metric)) return false;
  if (!published.arm.empty()) return ours.arm == published.arm;
  return arms.empty() || arms.contains(ours.arm);
}

void count(const PublishedVerdict& published, const std::string& label, const Verdict& ours,
           Agreement& result) {
  const auto effect = std::ranges::find_if(
      effect_words, [&](const EffectWords& words) { return words.effect == published.effect; });
  if (effect == effect_words.end()) return;
  ++result.all;
  if (!is_decided(ours.word)) {
    ++result.open;
  } else if (ours.word == effect->word) {
    ++result.same;
  } else {
    result.different.push_back(fmt::format("{} of {} with {} ({} there, {} here)", words_of(published.metric),
                                           label, ours.arm, effect->words,
                                           lower_first(badge_of(ours.word).text)));
  }
}

Agreement agreement(const PublishedSource& source, const std::vector<Comparison>& comparisons) {
  Agreement result;
  for (const PublishedVerdict& published : source.verdicts)
    for (const Comparison& comparison : comparisons) {
      if (comparison.compare.axis != "strategy") continue;
      std::set<std::string> arms = arms_with_numbers(source, published.model);
      arms.erase(comparison.compare.baseline);
      for (const CellVerdicts& judged : comparison.cells)
        if (judged.cell.model == published.model)
          for (const Verdict& ours : judged.verdicts)
            if (is_on(published, arms, ours)) count(published, judged.cell.label, ours, result);
    }
  return result;
}

std::string agreement_text(const Agreement& found) {
  if (found.all == 0) return " None of its verdicts is on a model and arm of this report.";
  std::vector<std::string> parts{fmt::format("{} of our {} verdicts on these agree", found.same, found.all)};
  if (found.open > 0) parts.push_back(fmt::format("{} are not decided", found.open));
  if (!found.different.empty()) parts.push_back(fmt::format("{} differ", found.different.size()));
  return fmt::format(" {}{}.", all_of(parts), found.different.empty() ? "" : ": " + some_of(found.different));
}

std::string hardware_text(const PublishedSource& source) {
  std::string text;
  std::set<std::string> kinds;
  for (const auto& [arm, name] : source.hardware) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", arm, name);
    kinds.insert(name);
  }
  if (text.empty()) return "";
  if (kinds.size() == 1) return " Its hardware: " + text + ".";
  return " Its arms ran on different hardware (" + text + "), so hardware and strategy cannot be separated.";
}

}  // namespace

std::vector<std::string> published_answers(const ReportData& data,
                                           const std::vector<Comparison>& comparisons) {
  std::vector<std::string> texts;
  if (!data.plan.published) return texts;
  for (const PublishedSource& source : data.plan.published->sources) {
    std::string text = source.name + "." + hardware_text(source);
    text += source.verdicts.empty() ? " Its numbers are drawn in the figures and not used in verdicts."
                                    : found_text(source) + agreement_text(agreement(source, comparisons));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace trainyard::reports
