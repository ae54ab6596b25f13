// What publications found that the experiment file names, beside our own verdicts.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

using experiments::PublishedSource;
using experiments::PublishedVerdict;

// The badge of a published effect ("no-change"); null if there is none.
const VerdictBadge* badge_of(const std::string& effect) {
  return row_or_null(badges(), &VerdictBadge::style, effect);
}

std::string words_of(const std::string& metric) {
  return metric == "time" ? "training time" : metric;
}

// " Training time: IMPROVES for MLP, DETERIORATES for CNN (ddp)."
std::string found_text(const PublishedSource& source) {
  std::string all;
  for (const char* metric : {"time", "accuracy", "loss"}) {
    std::vector<std::string> clauses;
    for (const VerdictBadge& badge : badges()) {
      std::vector<std::string> names;
      for (const PublishedVerdict& verdict : source.verdicts)
        if (verdict.metric == metric && verdict.effect == badge.style)
          names.push_back(title_of(verdict.model) + (verdict.arm.empty() ? "" : " (" + verdict.arm + ")"));
      if (!names.empty()) clauses.push_back(text_of(badge.kind) + " for " + some_of(names, 6));
    }
    if (!clauses.empty()) all += fmt::format(" {}: {}.", upper_first(words_of(metric)), joined(clauses));
  }
  return all;
}

// Whether the published verdict is on this verdict of ours.
bool is_on(const PublishedVerdict& published, const PublishedSource& source, const std::string& baseline,
           const Verdict& ours) {
  if (ours.metric != (published.metric == "time" ? "train-seconds" : "validation-" + published.metric))
    return false;
  if (!published.arm.empty()) return ours.arm == published.arm;
  std::set<std::string> arms;  // with published numbers
  for (const experiments::PublishedSeries& series : source.series)
    if (series.model == published.model && series.arm != baseline) arms.insert(series.arm);
  return arms.empty() || arms.contains(ours.arm);
}

// "; train samples: 50000 (CIFAR-10) there, 2000 here": the sizes that the source names, at least this one.
std::string sizes_text(const PublishedSource& source, const Report& report) {
  std::map<std::string, std::string> there = source.sizes;
  there.try_emplace("train_samples");
  std::string text;
  for (const auto& [name, value] : there)
    if (const std::string here = setting_values(report.runs, name); !here.empty())
      text +=
          fmt::format("; {}: {}{} here", with_spaces(name), value.empty() ? "" : value + " there, ", here);
  return text;
}

// " Other data than the study: mnist, not fashion-mnist.": the data sets of the report.
std::string data_text(const PublishedSource& source, const Report& report) {
  std::set<std::string> others;
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells)
      if (cell.dataset != source.dataset && !cell.dataset.empty()) others.insert(cell.dataset);
  return source.dataset.empty() || others.empty()
             ? ""
             : fmt::format(" Other data than the study: {}, not {}. So this is not a repetition of it.",
                           joined(others), source.dataset);
}

// What the report does with numbers of a source that has no verdicts.
std::string numbers_text(const PublishedSource& source, const Report& report) {
  const auto rows = std::ranges::count(report.published_numbers, source.name, &PublishedNumber::source);
  if (source.tables.empty()) return " Its numbers are drawn in the figures and not used in verdicts.";
  if (rows == 0) return " None of its numbers is on runs of this report.";
  std::string sizes = sizes_text(source, report);
  if (!sizes.empty()) sizes = upper_first(sizes.substr(2)) + ".";
  return fmt::format(
      " {} of its numbers {} beside ours in the table of published numbers, and not used in verdicts.{}{}",
      rows, rows == 1 ? "is" : "are", sizes.empty() ? "" : " ", sizes);
}

std::string agreement_text(const PublishedSource& source, const Report& report) {
  int same = 0, open = 0;
  std::vector<std::string> different;  // "accuracy of CNN with ddp (IMPROVES there, NO CHANGE here)"
  const std::vector<PublishedPair> pairs = published_pairs(source, report.comparisons);
  for (const auto& [metric, published, cell, ours] : pairs) {
    if (!is_decided(ours->kind)) {
      ++open;
    } else if (ours->kind == published) {
      ++same;
    } else {
      different.push_back(fmt::format("{} of {} with {} ({} there, {} here)", metric, cell->label, ours->arm,
                                      text_of(published), text_of(ours->kind)));
    }
  }
  if (pairs.empty()) return " None of its verdicts is on a model and arm of this report.";
  std::vector<std::string> parts{fmt::format("{} of our {} verdicts on these agree", same, pairs.size())};
  if (open > 0) parts.push_back(fmt::format("{} {} not decided", open, open == 1 ? "is" : "are"));
  if (!different.empty())
    parts.push_back(fmt::format("{} {}", different.size(), different.size() == 1 ? "differs" : "differ"));
  return fmt::format(" {}{}{}.", all_of(parts), different.empty() ? "" : ": " + some_of(different),
                     sizes_text(source, report));
}

std::string hardware_text(const PublishedSource& source) {
  std::set<std::string> kinds;
  for (const auto& [arm, name] : source.hardware) kinds.insert(name);
  const std::string text =
      joined(source.hardware, [](const auto& one) { return one.first + " on " + one.second; });
  if (kinds.size() <= 1) return text.empty() ? "" : " Its hardware: " + text + ".";
  return " Its arms ran on different hardware (" + text + "), so hardware and strategy cannot be separated.";
}

}  // namespace

std::vector<PublishedPair> published_pairs(const PublishedSource& source,
                                           const std::vector<Comparison>& comparisons) {
  std::vector<PublishedPair> pairs;
  for (const PublishedVerdict& published : source.verdicts)
    for (const Comparison& comparison : comparisons)
      for (const Cell& cell : comparison.cells)
        for (const Verdict& ours : cell.verdicts)
          if (const VerdictBadge* badge = badge_of(published.effect);
              badge != nullptr && comparison.compare.axis == "strategy" && cell.model == published.model &&
              is_on(published, source, comparison.compare.baseline, ours))
            pairs.push_back({words_of(published.metric), badge->kind, &cell, &ours});
  return pairs;
}

std::vector<std::string> published_answers(const Report& report) {
  std::vector<std::string> texts;
  if (!report.published) return texts;
  for (const PublishedSource& source : report.published->sources)
    texts.push_back(source.name + "." + hardware_text(source) +
                    (source.verdicts.empty() ? numbers_text(source, report)
                                             : found_text(source) + agreement_text(source, report)) +
                    data_text(source, report));
  return texts;
}

}  // namespace trainyard::reports
