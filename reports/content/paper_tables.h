// The verdicts as neutral tables, for papers (LaTeX, Markdown) and for machines (CSV).
#pragma once

#include <string>
#include <vector>

#include "reports/content/content.h"
#include "reports/format/table.h"

namespace trainyard::reports {

struct PaperTable {
  std::string slug;         // file name: "verdicts"
  std::string caption;      // plain text
  std::string columns;      // of a LaTeX tabular
  bool long_table = false;  // many rows: small print, over pages
  Table table;
};

// For each comparison the table in the published shape, every effect with its intervals and, of a parameter
// study, the percent of its benchmark, as text.
std::vector<PaperTable> paper_tables(const Content& content);

// Every verdict of every comparison with its numbers: effects and intervals in `unit`, p after Holm.
Table verdict_numbers(const Content& content);

// What each run ended with, a row a run.
Table run_numbers(const Content& content);

}  // namespace trainyard::reports
