#include "reports/answer/published_study.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

using experiments::PublishedSource;
using experiments::PublishedVerdict;

// A published effect, and the same as one of our verdicts.
struct KnownEffect {
  const char* name;
  VerdictKind kind;
};
constexpr std::array<KnownEffect, 3> effects{{{"improves", VerdictKind::improves},
                                              {"no-change", VerdictKind::no_change},
                                              {"deteriorates", VerdictKind::deteriorates}}};

std::string metric_of(const std::string& published) {
  return published == "time" ? "train-seconds" : "validation-" + published;
}

std::string words_of(const std::string& metric) {
  return metric == "time" ? "training time" : metric;
}

// " Training time: IMPROVES for MLP, DETERIORATES for CNN (ddp)."
std::string found_text(const PublishedSource& source) {
  std::string all;
  for (const char* metric : {"time", "accuracy", "loss"}) {
    std::vector<std::string> clauses;
    for (const KnownEffect& effect : effects) {
      std::vector<std::string> names;
      for (const PublishedVerdict& verdict : source.verdicts)
        if (verdict.metric == metric && verdict.effect == effect.name)
          names.push_back(title_of(verdict.model) + (verdict.arm.empty() ? "" : " (" + verdict.arm + ")"));
      if (!names.empty()) clauses.push_back(text_of(effect.kind) + " for " + some_of(names, 6));
    }
    if (!clauses.empty()) all += fmt::format(" {}: {}.", upper_first(words_of(metric)), joined(clauses));
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
  std::vector<std::string> different;  // "accuracy of CNN with ddp (IMPROVES there, NO CHANGE here)"
};

// Whether the published verdict is on this verdict of ours. `arms`: those of the publication with numbers.
bool is_on(const PublishedVerdict& published, const std::set<std::string>& arms, const Verdict& ours) {
  if (ours.metric != metric_of(published.metric)) return false;
  if (!published.arm.empty()) return ours.arm == published.arm;
  return arms.empty() || arms.contains(ours.arm);
}

void count(const PublishedVerdict& published, const std::string& label, const Verdict& ours,
           Agreement& result) {
  const auto effect = std::ranges::find(effects, published.effect, &KnownEffect::name);
  if (effect == effects.end()) return;
  ++result.all;
  if (!is_decided(ours.kind)) {
    ++result.open;
  } else if (ours.kind == effect->kind) {
    ++result.same;
  } else {
    result.different.push_back(fmt::format("{} of {} with {} ({} there, {} here)", words_of(published.metric),
                                           label, ours.arm, text_of(effect->kind), text_of(ours.kind)));
  }
}

Agreement agreement(const PublishedSource& source, const std::vector<Comparison>& comparisons) {
  Agreement result;
  for (const PublishedVerdict& published : source.verdicts)
    for (const Comparison& comparison : comparisons) {
      if (comparison.compare.axis != "strategy") continue;
      std::set<std::string> arms = arms_with_numbers(source, published.model);
      arms.erase(comparison.compare.baseline);
      for (const Cell& cell : comparison.cells)
        if (cell.model == published.model)
          for (const Verdict& ours : cell.verdicts)
            if (is_on(published, arms, ours)) count(published, cell.label, ours, result);
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

std::vector<std::string> published_answers(const Report& report) {
  std::vector<std::string> texts;
  if (!report.published) return texts;
  for (const PublishedSource& source : report.published->sources) {
    std::string text = source.name + "." + hardware_text(source);
    text += source.verdicts.empty()
                ? " Its numbers are drawn in the figures and not used in verdicts."
                : found_text(source) + agreement_text(agreement(source, report.comparisons));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace trainyard::reports
