// The answer of a report in plain words, for a reader who has no time for the tables. It is composed from the
// published verdicts: validation accuracy, validation loss, training time per epoch.
// Page, Markdown report and terminal print the same texts.
#pragma once

#include <string>
#include <vector>

#include "reports/document/metrics.h"
#include "reports/document/report.h"

namespace trainyard::reports {

struct Answer {
  std::vector<std::vector<std::string>> paragraphs;  // up to four short ones on each comparison
  std::vector<std::string> published;                // one per publication that the experiment file names
  std::string compared;                              // what was compared
  std::string machine;                               // on which machine, on CPU or GPU
};

Answer make_answer(const Report& report);

// One text per publication: its verdicts, how many of ours agree, which ones differ, and its hardware.
// - Only comparisons of strategies are used.
// - A published verdict without an arm is on each arm of the model that the publication has numbers of, except
//   our baseline. Without such numbers it is on all of our arms.
std::vector<std::string> published_answers(const Report& report);

// "Effect of threads (2 and 4 against 1) on MLP".
std::string subtitle(const Comparison& comparison);

// A published verdict and ours on the same model, arm and metric.
struct PublishedPair {
  std::string metric;  // "training time"
  VerdictKind published;
  const Cell* cell = nullptr;
  const Verdict* ours = nullptr;
};
std::vector<PublishedPair> published_pairs(const experiments::PublishedSource& source,
                                           const std::vector<Comparison>& comparisons);

// "0.05", "0.05 (MLP), 0.02 (CNN)": the values of a setting, with the models or the strategies that have them.
std::string setting_values(const std::vector<RunRow>& runs, const std::string& setting);

// The published studies and the machine, each with its name: "Machine: …".
std::vector<std::string> answer_facts(const Answer& answer);

// Values of the compared axis in the order of the cells.
std::vector<std::string> arms_of(const Comparison& comparison);

// `label` before `text`; empty if `text` is empty.
std::string with_label(const std::string& label, const std::string& text);

// "Verdicts against single"; in a report of several experiments "first: verdicts against single".
std::string heading(const Comparison& comparison, const std::string& what = "Verdicts");

// The text to show without verdicts: "No verdicts against single: there is no arm of strategy."
std::string no_verdicts_text(const Comparison& comparison);

}  // namespace trainyard::reports
