#include "tools/trainyard/commands/compare_gate.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/words.h"

namespace trainyard::tools {
namespace {

using reports::Verdict;
using reports::VerdictKind;

bool is_answer(const Verdict& verdict) {
  return is_decided(verdict.kind) || (verdict.kind == VerdictKind::inconclusive && verdict.p);
}

bool is_broken(const Verdict& verdict) {
  return verdict.kind == VerdictKind::broken;
}

bool is_not_comparable(const Verdict& verdict) {
  return verdict.kind == VerdictKind::not_comparable;
}

const std::array<FailOnWord, 7> all_words{
    {{"deteriorates", "a metric is worse, or has no verdict, for example NO DATA",
      [](const Verdict& one) { return one.kind == VerdictKind::deteriorates || !is_answer(one); }},
     {"broken", "an arm trains something else", is_broken},
     {"not-comparable", "the arms differ in more than is declared", is_not_comparable},
     {"not-verified", "a program of your own did not record values that must be equal",
      [](const Verdict& one) { return !one.verified; }},
     {"undecided", "no decision: inconclusive, interim, no data, or too few seeds",
      [](const Verdict& one) { return !is_decided(one.kind) && !is_broken(one) && !is_not_comparable(one); }},
     {"missing", "a planned run has no result, or its result was removed",
      [](const Verdict& one) {
        return !one.dropped.empty() || one.kind == VerdictKind::interim || one.kind == VerdictKind::no_data;
      }},
     {"replaced", "results were trained again after they were seen", [](const Verdict& one) {
        return std::ranges::count(one.caveats, reports::replaced_mark, &reports::Caveat::mark) > 0;
      }}}};

std::string shown_word(const Verdict& verdict) {
  return text_of(verdict.kind) + reports::marks_text(verdict.caveats) +
         (verdict.verified ? "" : ", NOT VERIFIED") + (!verdict.dropped.empty() ? ", runs left out" : "");
}

bool fails_any(const Verdict& verdict, FailOnWords asked) {
  return std::ranges::any_of(asked, [&](const FailOnWord* word) { return word->fails(verdict); });
}

// Add the failures of one arm to `lines`.
void add_failures(const reports::Cell& cell, const std::string& arm, FailOnWords asked,
                  const std::set<std::string>& metrics, std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, std::vector<std::string>>> failures;  // metrics by word
  bool any = false;
  for (const Verdict& verdict : cell.verdicts) {
    if (verdict.arm != arm) continue;
    const bool chosen = metrics.empty() || metrics.contains(verdict.metric);
    any = any || chosen || is_answer(verdict);
    if (chosen && fails_any(verdict, asked))
      reports::value_of_key(failures, shown_word(verdict)).push_back(phase_and_metric(verdict));
  }
  Verdict nothing;
  nothing.kind = VerdictKind::no_data;
  if (!any && fails_any(nothing, asked)) failures.push_back({"NO DATA", {"no run has recorded a metric"}});
  for (const auto& [word, names] : failures)
    lines.push_back(cell.label + " " + arm + ": " + word + " (" + joined(names) + ")");
}

}  // namespace

std::span<const FailOnWord> fail_on_words() {
  return all_words;
}

std::vector<const FailOnWord*> parse_fail_on(const std::vector<std::string>& asked) {
  std::vector<const FailOnWord*> parsed;
  for (const std::string& text : asked) {
    parsed.push_back(row_or_null(all_words, &FailOnWord::name, text));
    if (parsed.back() == nullptr)
      throw UserError("--fail-on: unknown word \"" + text + "\"" +
                      name_advice(text, names_of(all_words, &FailOnWord::name)));
  }
  return parsed;
}

std::vector<std::string> gate_failures(std::span<const reports::Comparison> comparisons, FailOnWords asked,
                                       const std::set<std::string>& metrics) {
  std::vector<std::string> lines;
  for (const reports::Comparison& comparison : comparisons)
    for (const reports::Cell& cell : comparison.cells)
      for (const reports::Arm& arm : cell.arms) add_failures(cell, arm.value, asked, metrics, lines);
  return lines;
}

}  // namespace trainyard::tools
