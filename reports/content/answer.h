// The answer of a report in plain words, for a reader who has no time for the tables. It is composed from the
// verdicts of the table of models by verdict: validation accuracy, validation loss, training time per epoch.
// Page, Markdown report and terminal print the same texts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/results/report_data.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

struct Answer {
  std::vector<std::string> paragraphs;  // one per comparison
  std::vector<std::string> published;   // one per publication that the experiment file names
  std::string compared;                 // what was compared
  std::string machine;                  // on which machine
};

// `provenance`: see reports/results/provenance.h.
Answer make_answer(const ReportData& data, const std::vector<Comparison>& comparisons,
                   const std::vector<std::pair<std::string, std::string>>& provenance);

// "Effect of threads (2 and 4 against 1) on MLP".
std::string subtitle(const Comparison& comparison);

// One paragraph. Per arm: which models get faster or slower, and what happens to accuracy and loss. Then what
// is not decided, and why. It stays short if there are many models or arms: counts and some names.
std::string answer_text(const Comparison& comparison);

// The explanation of the table of models by verdict, with the margins.
std::string shape_explanation(const Comparison& comparison);

}  // namespace trainyard::reports
