// The results and verdicts as tables for papers (LaTeX, Markdown) and programs (CSV).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/document/metrics.h"
#include "reports/document/report.h"
#include "reports/format/table.h"

namespace trainyard::reports {

inline constexpr const char* contradiction_mark = "†";
inline constexpr const char* contradiction_note = "† The training metric has the opposite verdict.";

// Whether training improves and validation deteriorates, or the reverse.
bool contradicts(const Cell& cell, const Verdict& published);

// The published verdicts in words, one row per model and arm. A note explains the mark, if there is one.
Table models_table(const Comparison& comparison);

// Each setting of the runs with its values, and the models or strategies that have them.
Table settings_table(const Report& report);

struct PaperTable {
  std::string slug;         // file name: "verdicts"
  bool long_table = false;  // in small print, over several pages
  Table table;
};

// The results themselves: mean, 95 % t interval and number of runs of each metric, per cell and arm.
struct Results {
  PaperTable table;  // one row per kind of metric and arm, one column per phase; the best means in bold
  Table numbers;     // exact: one row per cell, arm and metric, in the units of the database
};

// A cell whose runs are all in an earlier comparison is left out.
Results make_results(const std::vector<Comparison>& comparisons);

// The LaTeX files of a table by their names: "verdicts" for documents in one column, and if the table is short
// "verdicts-two-column".
std::vector<std::pair<std::string, std::string>> latex_files(const PaperTable& paper);

// All effects of a comparison with their intervals. A row of one text is the heading of an arm or a footnote.
PaperTable effects_table(const Comparison& comparison);

// Tables per comparison: verdicts in words, and all effects with intervals. The last ones have published verdicts and numbers.
std::vector<PaperTable> paper_tables(const Report& report);

// What a rank of each arm sends in a step and held in its first one, and how stale updates of asynchronous servers were; without rows if
// nothing is recorded.
Table rank_costs(const Report& report);

// Published verdicts and ours, with their words; without rows if there are none.
PaperTable published_verdicts(const Report& report);

// Numbers of publications and ours; without rows if there are none. A row of one text is a footnote.
// For a page and papers, for a terminal (empty without rows), and with all digits for programs.
PaperTable published_numbers(const Report& report);
std::string published_numbers_text(const Report& report, std::size_t width);
Table published_numbers_in_full(const Report& report);

// All verdicts of all comparisons with their numbers: effects and intervals in `unit`, p after Holm.
Table verdict_numbers(const std::vector<Comparison>& comparisons);

// Final metrics, one row per run.
Table run_numbers(const Report& report);

}  // namespace trainyard::reports
