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

using reports::VerdictKind;

const std::array<FailOnWord, 7> all_words{
    {{"deteriorates", FailOn::deteriorates, "a metric is worse, or has no verdict, for example NO DATA"},
     {"broken", FailOn::broken, "an arm trains something else"},
     {"not-comparable", FailOn::not_comparable, "the arms differ in more than is declared"},
     {"not-verified", FailOn::not_verified, "a program of your own did not record values that must be equal"},
     {"undecided", FailOn::undecided, "no decision: inconclusive, interim, no data, or too few seeds"},
     {"missing", FailOn::missing, "a planned run has no result, or its result was removed"},
     {"replaced", FailOn::replaced, "results were trained again after they were seen"}}};

bool is_answer(const GateCase& verdict) {
  return is_decided(verdict.kind) || (verdict.kind == VerdictKind::inconclusive && verdict.tested);
}

bool has_word_of_its_own(VerdictKind kind) {
  return kind == VerdictKind::broken || kind == VerdictKind::not_comparable;
}

std::string shown_word(const reports::Verdict& verdict) {
  return text_of(verdict.kind) + reports::marks_text(verdict.caveats) +
         (verdict.verified ? "" : ", NOT VERIFIED") + (!verdict.dropped.empty() ? ", runs left out" : "");
}

bool fails_any(const GateCase& verdict, std::span<const FailOn> asked) {
  return std::ranges::any_of(asked, [&](FailOn word) { return fails(verdict, word); });
}

// Add the failures of one arm to `lines`.
void add_failures(const reports::Cell& cell, const std::string& arm, std::span<const FailOn> asked,
                  const std::set<std::string>& metrics, std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, std::vector<std::string>>> failures;  // metrics by word
  bool any = false;
  for (const reports::Verdict& verdict : cell.verdicts) {
    if (verdict.arm != arm) continue;
    const GateCase one = gate_case(verdict);
    const bool chosen = metrics.empty() || metrics.contains(verdict.metric);
    any = any || chosen || is_answer(one);
    if (chosen && fails_any(one, asked))
      reports::value_of_key(failures, shown_word(verdict)).push_back(phase_and_metric(verdict));
  }
  if (!any && fails_any({VerdictKind::no_data, false, true, true}, asked))
    failures.push_back({"NO DATA", {"no run has recorded a metric"}});
  for (const auto& [word, names] : failures)
    lines.push_back(cell.label + " " + arm + ": " + word + " (" + joined(names) + ")");
}

}  // namespace

std::span<const FailOnWord> fail_on_words() {
  return all_words;
}

std::vector<FailOn> parse_fail_on(const std::vector<std::string>& asked) {
  std::vector<std::string> known;
  known.reserve(all_words.size());
  for (const FailOnWord& word : all_words) known.push_back(word.name);
  std::vector<FailOn> parsed;
  for (const std::string& text : asked) {
    const auto found = std::ranges::find(all_words, text, &FailOnWord::name);
    if (found == all_words.end())
      throw UserError("--fail-on: unknown word \"" + text + "\"" + name_advice(text, known));
    parsed.push_back(found->value);
  }
  return parsed;
}

GateCase gate_case(const reports::Verdict& verdict) {
  const bool missing = !verdict.dropped.empty();
  const bool replaced = std::ranges::find(verdict.caveats, reports::replaced_mark, &reports::Caveat::mark) !=
                        verdict.caveats.end();
  return {verdict.kind, verdict.p.has_value(), verdict.verified, missing, replaced};
}

bool fails(const GateCase& verdict, FailOn word) {
  switch (word) {
    case FailOn::deteriorates:
      return verdict.kind == VerdictKind::deteriorates || !is_answer(verdict);
    case FailOn::broken:
      return verdict.kind == VerdictKind::broken;
    case FailOn::not_comparable:
      return verdict.kind == VerdictKind::not_comparable;
    case FailOn::not_verified:
      return !verdict.verified;
    case FailOn::undecided:
      return !is_decided(verdict.kind) && !has_word_of_its_own(verdict.kind);
    case FailOn::missing:
      return verdict.left_out || verdict.kind == VerdictKind::interim || verdict.kind == VerdictKind::no_data;
    case FailOn::replaced:
      return verdict.replaced;
  }
  return true;
}

std::vector<std::string> gate_failures(std::span<const reports::Comparison> comparisons,
                                       std::span<const FailOn> asked, const std::set<std::string>& metrics) {
  std::vector<std::string> lines;
  for (const reports::Comparison& comparison : comparisons)
    for (const reports::Cell& cell : comparison.cells)
      for (const reports::Arm& arm : cell.arms) add_failures(cell, arm.value, asked, metrics, lines);
  return lines;
}

}  // namespace trainyard::tools
