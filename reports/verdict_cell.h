// One verdict as a table cell: glyph, word, effect, interval, and a small picture of the interval over the
// margin. Colour is never the only sign. Used by the tables of `page_verdicts` and `page_task_metrics`.
#pragma once

#include <span>
#include <string>

#include "experiments/compare.h"
#include "reports/markup.h"
#include "reports/verdict.h"

namespace trainyard::reports {

struct Look {
  Word word;
  const char* style;  // class
  const char* glyph;
  const char* text;
};
std::span<const Look> looks();  // in the order of a legend
const Look& look_of(Word word);

Markup verdict_cell(const Verdict* verdict);  // null: not defined

// "margin ±0.5 pp"
std::string margin_of(const Metric& metric, const experiments::Margins& margins);

}  // namespace trainyard::reports
