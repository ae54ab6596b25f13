// One verdict as a table cell: glyph, word, effect, interval, and a small picture of interval and margin.
// Colour is never the only sign. Used by the tables of `page_verdicts` and `page_task_metrics`.
#pragma once

#include "reports/document/report.h"
#include "reports/format/markup.h"

namespace trainyard::reports {

Markup verdict_cell(const Verdict* verdict);  // null: not defined

}  // namespace trainyard::reports
