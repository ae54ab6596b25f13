// The first screen of the page: the answer, the table of models by verdict, what was published, what was
// compared on which machine, and the caveats. The provenance is the last section of the page.
#include <algorithm>
#include <span>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/content/paper_tables.h"
#include "reports/format/table.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

constexpr std::size_t most_caveats = 8;  // the others are folded

std::string names_in(const PublishedTable::Row& row, MetricKind kind) {
  const auto found = row.find(kind);
  return found == row.end() || found->second.empty() ? "–" : joined(found->second, {}, "; ");
}

// Text in which words such as "mp-ddp" are not broken at the hyphen.
void add_unbroken(Markup& out, const std::string& text) {
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    word.find('-') == std::string::npos ? out.text(word) : out.leaf("span", {{"class", "nb"}}, word);
    if (end < text.size()) out.text(" ");
    from = end + 1;
  }
}

bool is_empty(const PublishedTable::Row& row) {
  return std::ranges::all_of(row, [](const auto& one) { return one.second.empty(); });
}

Markup models_by_verdict(const Comparison& comparison, bool several) {
  const PublishedTable published = published_table(comparison);
  Table head;
  head.columns = {"Verdict", "Accuracy", "Loss", "Time"};
  head.caption = (several ? heading(comparison) + ". " : "") + shape_explanation(comparison) +
                 (published.marked ? " † The training metric has the opposite verdict." : "");
  Markup out;
  open_html_table(out, head, "shape");
  for (const auto& [name, row] : published.rows) {
    if (name == "no verdict" && is_empty(row)) continue;
    std::string style = name == "no verdict" ? "interim" : name;
    std::ranges::replace(style, ' ', '-');
    const auto badge =
        std::ranges::find_if(badges(), [&](const VerdictBadge& one) { return one.style == style; });
    out.open("tr").leaf("th", {{"scope", "row"}, {"class", "w " + style}}, badge->glyph + (" " + name));
    for (const MetricKind kind : {MetricKind::accuracy, MetricKind::loss, MetricKind::time}) {
      out.open("td");
      add_unbroken(out, names_in(row, kind));
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
    if (has_verdicts(comparison)) out.add(models_by_verdict(comparison, several));
  out.close().add(facts(content.answer)).close();
  out.add(caveats(content)).close();
  return out;
}

Markup page_provenance(const Content& content) {
  Markup out;
  out.open("section", {{"id", "provenance"}}).leaf("h2", {}, "Provenance").open("dl");
  for (const auto& [name, value] : content.report->provenance) out.leaf("dt", {}, name).leaf("dd", {}, value);
  out.close().close();
  return out;
}

}  // namespace trainyard::reports
