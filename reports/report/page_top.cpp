// The first screen of the page: the answer, the table of models and arms, what was published, what was
// compared on which machine, and the caveats. The provenance is the last section of the page.
#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/content/paper_tables.h"
#include "reports/document/metrics.h"
#include "reports/format/table.h"
#include "reports/format/words.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

constexpr std::size_t most_caveats = 8;  // the others are folded

// A symbol with its words, which a screen reader and the tooltip have.
void add_symbol(Markup& out, const Cell& cell, const Arm& arm, const Metric& metric) {
  const Verdict* verdict = cell.find(arm.value, metric.name);
  const std::string style = verdict == nullptr ? "na" : badge_of(verdict->kind).style;
  std::string words = metric.title + ": ";
  words += verdict == nullptr ? "not defined" : badge_of(verdict->kind).text;
  if (verdict != nullptr && verdict->ci95) words += " (" + effect_text(*verdict) + ")";
  const std::string glyph = verdict == nullptr ? "·" : badge_of(verdict->kind).glyph;
  const bool mark = verdict != nullptr && contradicts(cell, *verdict);
  out.leaf("span", {{"class", "sym " + style}, {"role", "img"}, {"aria-label", words}, {"title", words}},
           glyph + (mark ? contradiction_mark : ""));
}

// What weakens the words of the arm, each mark once.
std::string marks_of(const Cell& cell, const Arm& arm) {
  std::vector<Caveat> caveats;
  for (const Metric* metric : published_metrics())
    if (const Verdict* verdict = cell.find(arm.value, metric->name))
      caveats.insert(caveats.end(), verdict->caveats.begin(), verdict->caveats.end());
  return joined(reports::marks_of(caveats));
}

// " ▲ improves, = no change": the symbols that the comparison has.
std::string legend_of(const Comparison& comparison) {
  std::set<VerdictKind> kinds;
  bool undefined = false, contradicted = false;
  for (const Cell& cell : comparison.cells) {
    for (const Verdict& verdict : cell.verdicts) {
      if (find_metric(verdict.metric).published) kinds.insert(verdict.kind);
      contradicted = contradicted || contradicts(cell, verdict);
    }
    for (const Arm& arm : cell.arms)
      for (const Metric* metric : published_in(comparison))
        undefined = undefined || cell.find(arm.value, metric->name) == nullptr;
  }
  const std::string legend = joined(kinds, [](VerdictKind kind) {
    return fmt::format("{} {}", badge_of(kind).glyph, lower_first(badge_of(kind).text));
  });
  return legend + (undefined ? ", · not defined for the model" : "") +
         (contradicted ? std::string(". ") + contradiction_note : "");
}

// One row per model and one column per arm, with a symbol per metric.
Markup matrix(const Comparison& comparison, bool several) {
  Table head;
  const auto text = [&](const Metric* metric) {
    return fmt::format("{} ({})", lower_first(metric->title), margin_of(*metric, comparison.compare.margins));
  };
  head.caption = fmt::format("{}In each cell: {}. {}.", several ? heading(comparison) + ". " : "",
                             joined(published_in(comparison), text), legend_of(comparison));
  head.columns = {"Model"};
  for (const std::string& arm : arms_of(comparison)) head.columns.emplace_back(arm);
  Markup out;
  open_html_table(out, head, "shape");
  for (const Cell& cell : comparison.cells) {
    out.open("tr").leaf("th", {{"scope", "row"}}, cell.label);
    for (const std::string& value : arms_of(comparison)) {
      out.open("td");
      if (const Arm* arm = cell.find_arm(value)) {
        for (const Metric* metric : published_in(comparison)) add_symbol(out, cell, *arm, *metric);
        if (const std::string marks = marks_of(cell, *arm); !marks.empty()) out.text(" " + marks);
      }
      out.close();
    }
    out.close();
  }
  out.close().close().close();
  return out;
}

void add_fact(Markup& out, const char* name, const std::string& text) {
  if (!text.empty()) out.leaf("dt", {}, name).leaf("dd", {}, text);
}

Markup facts(const Answer& answer) {
  Markup out;
  out.open("dl", {{"class", "facts"}});
  for (const std::string& published : answer.published) add_fact(out, "Published study", published);
  add_fact(out, "Compared", answer.compared);
  add_fact(out, "Machine", answer.machine);
  out.close();
  return out;
}

std::vector<const Statement*> statements_with(const Content& content, Severity severity) {
  std::vector<const Statement*> found;
  for (const Statement& statement : content.report->fairness)
    if (statement.severity == severity) found.push_back(&statement);
  return found;
}

const char* class_of(Severity severity) {
  return severity == Severity::fair ? "yes" : severity == Severity::unfair ? "not" : "note";
}

void add_list(Markup& out, std::span<const Statement* const> statements) {
  out.open("ul", {{"class", "fair"}});
  for (const Statement* statement : statements)
    out.leaf("li", {{"class", class_of(statement->severity)}}, statement->text);
  out.close();
}

void add_folded(Markup& out, const std::string& summary, std::span<const Statement* const> statements) {
  if (statements.empty()) return;
  out.open("details").leaf("summary", {}, summary);
  add_list(out, statements);
  out.close();
}

// Unfair first. One line each, the fair ones in one line.
Markup caveats(const Content& content) {
  std::vector<const Statement*> all = statements_with(content, Severity::unfair);
  const std::vector<const Statement*> notes = statements_with(content, Severity::note);
  const std::vector<const Statement*> fair = statements_with(content, Severity::fair);
  all.insert(all.end(), notes.begin(), notes.end());
  const std::size_t shown = std::min(all.size(), most_caveats);
  const std::span<const Statement* const> span(all);
  Markup out;
  out.open("div", {{"class", "caveats"}}).leaf("h2", {}, all.empty() ? "No caveats" : "Caveats");
  if (shown > 0) add_list(out, span.first(shown));
  add_folded(out, counted(all.size() - shown, "more caveat"), span.subspan(shown));
  add_folded(out,
             "✓ " + counted(fair.size(), "condition") + " of a fair comparison " +
                 (fair.size() == 1 ? "holds" : "hold") + ", as the records show",
             fair);
  out.close();
  return out;
}

}  // namespace

Markup page_top(const Content& content) {
  const bool several = content.report->comparisons.size() > 1;
  Markup out;
  out.open("header", {{"class", "top"}});
  out.leaf("p", {{"class", "sweep"}}, "trainyard report");
  out.leaf("h1", {}, content.report->name);
  if (!several) out.leaf("p", {{"class", "lede"}}, subtitle(content.report->comparisons.front()));
  for (std::size_t i = 0; i < content.report->comparisons.size(); ++i) {
    if (several) out.leaf("p", {{"class", "lede"}}, subtitle(content.report->comparisons[i]));
    out.open("div", {{"class", "answer"}});
    for (const std::string& paragraph : content.answer.paragraphs.at(i)) out.leaf("p", {}, paragraph);
    out.close();
  }
  out.open("div", {{"class", "first"}}).open("div");
  for (const Comparison& comparison : content.report->comparisons)
    if (has_verdicts(comparison)) out.add(matrix(comparison, several));
  out.close().add(facts(content.answer)).close();
  out.add(caveats(content)).close();
  return out;
}

Markup page_provenance(const Content& content) {
  Markup out;
  if (const PaperTable published = published_verdicts(*content.report); !published.table.rows.empty()) {
    out.open("section", {{"id", "published"}}).leaf("h2", {}, "Published verdicts");
    out.add(html_table(published.table, "numbers")).close().line();
  }
  if (const PaperTable numbers = published_numbers(*content.report); !numbers.table.rows.empty()) {
    out.open("section", {{"id", "published-numbers"}}).leaf("h2", {}, "Published numbers");
    out.add(html_table(numbers.table, "numbers")).close().line();
  }
  out.open("section", {{"id", "settings"}}).leaf("h2", {}, "Settings of the runs");
  out.add(html_table(settings_table(*content.report), "numbers")).close().line();
  out.open("section", {{"id", "provenance"}}).leaf("h2", {}, "Provenance").open("dl");
  for (const auto& [name, value] : content.report->provenance) out.leaf("dt", {}, name).leaf("dd", {}, value);
  out.close().close();
  return out;
}

}  // namespace trainyard::reports
