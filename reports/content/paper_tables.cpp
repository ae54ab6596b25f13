#include "reports/content/paper_tables.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/document/metrics.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

// " Experiment: first." in a report of several.
std::string of_experiment(const Comparison& comparison) {
  return comparison.experiment.empty() ? "" : " Experiment: " + comparison.experiment + ".";
}

// "improves (−22.9 %), REPLACED †".
std::string verdict_in_words(const Cell& cell, const Verdict& verdict) {
  std::string text = lower_first(badge_of(verdict.kind).text);
  if (verdict.ci95) text += " (" + effect_text(verdict) + ")";
  text += marks_text(verdict.caveats);
  return contradicts(cell, verdict) ? text + " " + contradiction_mark : text;
}

PaperTable compact(const Comparison& comparison) {
  PaperTable paper;
  paper.slug = "verdicts" + comparison.slug_end;
  paper.table = models_table(comparison);
  std::vector<std::string> titles;
  for (const Metric* metric : published_in(comparison)) titles.push_back(lower_first(metric->title));
  paper.table.caption =
      fmt::format("Verdicts on {}: each {} against {}.{}{}", all_of(titles), comparison.compare.axis,
                  baseline_text(comparison.compare), of_experiment(comparison),
                  paper.table.notes.empty() ? "" : " " + paper.table.notes.front());
  return paper;
}

constexpr std::size_t short_remark = 50;  // characters beside the word; a longer remark is a footnote

// The number of the footnote with this remark, which is added if it is new. Equal remarks are one footnote.
std::string footnote_of(const std::string& remark, std::vector<std::string>& footnotes) {
  const auto found = std::ranges::find(footnotes, remark);
  const auto number = found - footnotes.begin() + 1;
  if (found == footnotes.end()) footnotes.push_back(remark);
  return std::to_string(number);
}

// "NO DATA [1]": the word with its marks.
std::string word_with_footnote(const Verdict& verdict, std::vector<std::string>& footnotes) {
  const std::string word = text_of(verdict.kind);
  const std::string remark = word_with_reason(verdict).substr(word.size());
  if (columns(remark) <= short_remark) return word + remark;
  return fmt::format("{}{} [{}]", word, marks_text(verdict.caveats), footnote_of(remark, footnotes));
}

TableRow effect_row(const Verdict& verdict, std::vector<std::string>& footnotes) {
  return {find_metric(verdict.metric).title,
          word_with_footnote(verdict, footnotes),
          effect_text(verdict),
          interval_text(verdict),
          narrow_interval_text(verdict),
          p_with_hypothesis(verdict),
          std::int64_t{verdict.n}};
}

TableRow number_row(const Comparison& comparison, const Cell& cell, const Verdict& verdict) {
  const Interval none{NAN, NAN};
  const Interval wide = verdict.ci95.value_or(none);
  const Interval narrow = verdict.ci90.value_or(none);
  const Interval margin = verdict.ci95 ? verdict.margin.value_or(none) : none;
  return {comparison.compare.axis,
          comparison.compare.baseline,
          cell.label,
          verdict.arm,
          verdict.metric,
          text_of(verdict.kind),
          unit_name(verdict),
          verdict.effect.value_or(NAN),
          wide.low,
          wide.high,
          narrow.low,
          narrow.high,
          margin.low,
          margin.high,
          verdict.p.value_or(NAN),
          std::int64_t{verdict.n},
          verdict.reason.text,
          verdict.hypothesis,
          joined(marks_of(verdict.caveats), {}, " "),
          remarks_of(verdict),
          verdict.verified ? "true" : "false",
          verdict.later ? TableValue(std::int64_t{verdict.later->n}) : TableValue(NAN),
          verdict.later ? verdict.later->effect : NAN,
          verdict.later ? verdict.later->ci95.low : NAN,
          verdict.later ? verdict.later->ci95.high : NAN};
}

// What weakens a published number or ours, and the reasons.
std::vector<std::string> remarks_of(const PublishedNumber& number) {
  std::vector<std::string> texts = number.remarks;
  for (const Caveat& caveat : number.caveats) texts.push_back(caveat_text(caveat));
  return texts;
}

// "NO CHANGE, REPLACED [1, 2]": our word with its marks.
std::string word_with_footnotes(const PublishedNumber& number, std::vector<std::string>& footnotes) {
  std::vector<std::string> places;
  for (const std::string& remark : remarks_of(number)) places.push_back(footnote_of(remark, footnotes));
  const std::string word = (number.verdict.empty() ? "–" : number.verdict) + marks_text(number.caveats);
  return places.empty() ? word : fmt::format("{} [{}]", word, joined(places));
}

// "1.848 ± 0.0657 (5)": with the standard deviation and the number of values, if there are several.
std::string with_sd(double mean, double sd, int n) {
  return for_table(mean) + (std::isnan(sd) ? "" : fmt::format(" ± {} ({})", for_table(sd, 3), n));
}

}  // namespace

PaperTable published_verdicts(const Report& report) {
  PaperTable paper;
  paper.slug = "published";
  paper.table.columns = {"", "Metric", "Published", "Here"};
  paper.table.caption = "Published verdicts beside those of this report.";
  if (!report.published) return paper;
  for (const experiments::PublishedSource& source : report.published->sources)
    for (const PublishedPair& pair : published_pairs(source, report.comparisons))
      paper.table.rows.push_back(
          {fmt::format("{}: {} with {}", source.name, pair.cell->label, pair.ours->arm), pair.metric,
           text_of(pair.published), word_with_reason(*pair.ours)});
  return paper;
}

PaperTable published_numbers(const Report& report) {
  PaperTable paper;
  paper.slug = "published-numbers";
  paper.long_table = true;
  Table& table = paper.table;
  table.columns = {
      left_column("", 0.22),           left_column("Metric", 0.14),        left_column("Published", 0.13),
      left_column("Here", 0.13),       left_column("95 % interval", 0.12), right_column("n", 0.03),
      left_column("Our verdict", 0.15)};
  table.caption =
      "Published numbers beside those of this report. They are from other hardware and not used in verdicts. "
      "Percentages of the benchmark: here the geometric mean over pairs with the same seed. "
      "±: standard deviation over repeats there and seeds here, with their number in brackets. "
      "Intervals are 95 % t intervals of the mean. n: number of pairs or runs.";
  std::vector<std::string> footnotes;
  for (const PublishedNumber& number : report.published_numbers) {
    const Point& here = number.here;
    table.rows.push_back(
        {fmt::format("{}: {}", number.source, number.what),
         number.metric + (number.unit.empty() ? "" : ", " + number.unit),
         with_sd(number.published, number.published_sd, number.repeats),
         with_sd(here.mean, number.sd, here.n),
         std::isnan(here.low) ? "–" : fmt::format("[{}, {}]", for_table(here.low), for_table(here.high)),
         std::int64_t{here.n}, word_with_footnotes(number, footnotes)});
  }
  for (std::size_t i = 0; i < footnotes.size(); ++i)
    table.rows.push_back({fmt::format("[{}] {}", i + 1, footnotes[i])});
  return paper;
}

std::string published_numbers_text(const Report& report, std::size_t width) {
  Table table = published_numbers(report).table;
  if (table.rows.empty()) return "";
  while (table.rows.back().size() == 1) {  // a footnote
    table.notes.insert(table.notes.begin(), std::get<std::string>(table.rows.back().front()));
    table.rows.pop_back();
  }
  return paragraph(table.caption, width) + "\n" + aligned_table(table, width);
}

Table published_numbers_in_full(const Report& report) {
  Table table;
  table.columns = {"source", "what",    "metric", "unit", "published", "published_sd", "repeats", "here",
                   "low_95", "high_95", "sd",     "n",    "verdict",   "marks",        "remarks"};
  for (const PublishedNumber& one : report.published_numbers)
    table.rows.push_back({one.source, one.what, one.metric, one.unit, one.published, one.published_sd,
                          std::int64_t{one.repeats}, one.here.mean, one.here.low, one.here.high, one.sd,
                          std::int64_t{one.here.n}, one.verdict, joined(marks_of(one.caveats), {}, " "),
                          joined(remarks_of(one), {}, "; ")});
  return table;
}

PaperTable effects_table(const Comparison& comparison) {
  PaperTable paper;
  paper.slug = "effects" + comparison.slug_end;
  paper.long_table = true;
  paper.table.columns = {left_column("Metric", 0.17),
                         left_column("Verdict", 0.195),
                         right_column("Effect", 0.112),
                         right_column("95 % interval", 0.174),
                         right_column("90 % interval", 0.174),
                         right_column("p", 0.094),
                         right_column("n", 0.024)};
  paper.table.caption = fmt::format(
      "All effects against {}, with 95 % and 90 % confidence intervals. p: after Holm's correction, with its "
      "hypothesis (the arm is better or worse than the margin, or inside it). n: number of {}",
      baseline_text(comparison.compare),
      (comparison.compare.pair.empty() ? "runs in the smaller arm." : "pairs.") + of_experiment(comparison));
  std::vector<std::string> footnotes;
  for (const Cell& cell : comparison.cells) {
    std::string heading;
    for (const Verdict& verdict : cell.verdicts) {
      const std::string why = not_verified(*cell.find_arm(verdict.arm));
      const std::string arm =
          fmt::format("{}: {}{}", cell.label, verdict.arm, why.empty() ? "" : ". " + why + ".");
      if (arm != heading) paper.table.rows.push_back({heading = arm});
      paper.table.rows.push_back(effect_row(verdict, footnotes));
    }
  }
  for (std::size_t i = 0; i < footnotes.size(); ++i)
    paper.table.rows.push_back({fmt::format("[{}] {}", i + 1, footnotes[i].substr(2))});  // without ": "
  return paper;
}

bool contradicts(const Cell& cell, const Verdict& published) {
  const std::string training = "train-" + published.metric.substr(published.metric.find('-') + 1);
  const Verdict* other = cell.find(published.arm, training);
  if (other == nullptr || other->metric == published.metric) return false;
  return (other->kind == VerdictKind::improves && published.kind == VerdictKind::deteriorates) ||
         (other->kind == VerdictKind::deteriorates && published.kind == VerdictKind::improves);
}

Table models_table(const Comparison& comparison) {
  Table table;
  table.columns = {left_column("", 0.235)};
  const std::vector<const Metric*> published = published_in(comparison);
  for (const Metric* metric : published)
    table.columns.push_back(left_column(upper_first(metric->quantity), 0.21));
  const bool many_arms =
      std::ranges::any_of(comparison.cells, [](const Cell& cell) { return cell.arms.size() > 1; });
  for (const Cell& cell : comparison.cells)
    for (const Arm& arm : cell.arms) {
      TableRow row{cell.label + (many_arms ? " (" + arm.value + ")" : "")};
      for (const Metric* metric : published) {
        const Verdict* verdict = cell.find(arm.value, metric->name);
        row.emplace_back(verdict == nullptr ? "–" : verdict_in_words(cell, *verdict));
        if (verdict != nullptr && contradicts(cell, *verdict)) table.notes = {contradiction_note};
      }
      table.rows.push_back(std::move(row));
    }
  return table;
}

std::vector<PaperTable> paper_tables(const Report& report) {
  std::vector<PaperTable> papers;
  for (const Comparison& comparison : report.comparisons) {
    if (!has_verdicts(comparison)) continue;
    papers.push_back(compact(comparison));
    papers.push_back(effects_table(comparison));
  }
  if (PaperTable published = published_verdicts(report); !published.table.rows.empty())
    papers.push_back(std::move(published));
  if (PaperTable numbers = published_numbers(report); !numbers.table.rows.empty())
    papers.push_back(std::move(numbers));
  std::set<std::string> used;  // a slug is a file and a label
  for (PaperTable& paper : papers) paper.slug = unique_slug(paper.slug, used);
  return papers;
}

std::vector<std::pair<std::string, std::string>> latex_files(const PaperTable& paper) {
  const std::string label = "tab:" + paper.slug;
  if (paper.long_table) return {{paper.slug, latex_table(paper.table, label, LatexLayout::long_table)}};
  return {{paper.slug, latex_table(paper.table, label, LatexLayout::short_table)},
          {paper.slug + "-two-column", latex_table(paper.table, label, LatexLayout::two_columns)}};
}

Table verdict_numbers(const std::vector<Comparison>& comparisons) {
  Table table;
  table.columns = {"axis",   "baseline",   "cell",       "arm",        "metric",  "verdict",    "unit",
                   "effect", "low_95",     "high_95",    "low_90",     "high_90", "margin_low", "margin_high",
                   "p",      "n",          "reason",     "hypothesis", "marks",   "remarks",    "verified",
                   "all_n",  "all_effect", "all_low_95", "all_high_95"};
  for (const Comparison& comparison : comparisons) {
    for (const Cell& cell : comparison.cells) {
      for (const Verdict& verdict : cell.verdicts)
        table.rows.push_back(number_row(comparison, cell, verdict));
    }
  }
  return table;
}

Table run_numbers(const Report& report) {
  std::vector<const Metric*> columns;
  for (const Metric& metric : metrics()) {
    if (std::ranges::any_of(report.runs,
                            [&](const RunRow& run) { return run.values.contains(metric.column); }))
      columns.push_back(&metric);
  }
  Table table;
  table.columns = {"run_key", "model", "strategy", "seed", "epochs"};
  for (const Metric* metric : columns) table.columns.push_back(metric->name);
  std::vector<std::string> axes = report.varying;
  std::erase(axes, "epochs");  // has its own column
  table.columns.insert(table.columns.end(), axes.begin(), axes.end());
  for (const RunRow& run : report.runs) {
    if (!run.has_result) continue;
    TableRow row{run.key, run.model, run.strategy, run.seed, run.epochs};
    for (const Metric* metric : columns) row.emplace_back(value_in(run, metric->column));
    for (const std::string& axis : axes) row.emplace_back(setting_text(run, axis));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table settings_table(const Report& report) {
  Table table;
  table.columns = {"Setting", "Value"};
  std::set<std::string> names;
  for (const RunRow& run : report.runs)
    for (const auto& [name, value] : run.settings) names.insert(name);
  for (const char* in_labels : {"model", "strategy", "seed"}) names.erase(in_labels);
  for (const std::string& name : names)
    if (const std::string values = setting_values(report.runs, name); !values.empty())
      table.rows.push_back({with_spaces(name), values});
  return table;
}

}  // namespace trainyard::reports
