#include "reports/report/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/content/paper_tables.h"
#include "reports/draw/assets.h"
#include "reports/draw/svg.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"
#include "reports/format/words.h"
#include "reports/report/report.h"

namespace trainyard::reports {

namespace {

// For legends: colour and dash as in the figures.
Markup line_sample(const std::string& style, const char* line) {
  Markup out;
  out.open("svg", {{"class", "sample"}, {"width", "20"}, {"height", "10"}, {"aria-hidden", "true"}});
  out.open("g", {{"class", style}}).empty("path", {{"class", line}, {"d", "M0 5H20"}}).close().close();
  return out;
}

// Content security policy: only our own style sheet and script are active, whatever the data contains.
std::string policy(const std::string& style) {
  return fmt::format(
      "default-src 'none'; script-src '{}'; style-src '{}'; img-src 'none'; base-uri 'none'; form-action "
      "'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      policy_hash(page_js()), policy_hash(style));
}

void add_head(Markup& out, const Content& content, const std::string& style) {
  out.open("head").line();
  out.empty("meta", {{"charset", "utf-8"}}).line();
  out.empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", policy(style)}}).line();
  out.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}).line();
  out.leaf("title", {}, content.report->name + " · trainyard").line();
  out.open("style").verbatim(style).close().line();
  out.close().line();
}

// Figures with their query and data: the panels of a cell, effects, data sets and the time breakdown.

// Adds links to the figure's files in figures/.
void add_files(Markup& out, const Figure& figure, const std::set<std::string>& formats) {
  static constexpr std::array files{"svg", "png", "pdf", "csv"};
  Markup links;
  for (const char* file : files) {
    if (formats.count(file) != 0)
      links.leaf("a", {{"href", fmt::format("figures/{}.{}", figure.slug, file)}}, file).text(" ");
  }
  if (!links.str().empty()) out.open("p", {{"class", "said"}}).text(figure.slug + ": ").add(links).close();
}

void add_details(Markup& out, const Figure& figure, const std::set<std::string>& formats) {
  out.open("details").leaf("summary", {}, "Query and data");
  out.leaf("pre", {}, figure.sql);
  add_files(out, figure, formats);
  out.open("pre", {{"class", "csv"},
                   {"tabindex", "0"},
                   {"aria-label", "Data of " + figure.title},
                   {"data-file", figure.slug + ".csv"}});
  out.text(csv_table(figure.data)).close().close();
}

// Samples of the series with their labels, each key once. A single series needs none.
void add_legend(Markup& out, const Figure& figure) {
  std::vector<Series> entries;
  for (const Series& series : series_of(figure))
    if (std::ranges::find(entries, series.key, &Series::key) == entries.end()) entries.push_back(series);
  if (entries.size() < 2) return;
  out.open("ul", {{"class", "plegend"}});
  for (const Series& series : entries) out.open("li").add(series_sample(series)).text(series.label).close();
  out.close();
}

// Boxes in the colours of stacked bars or timelines.
void add_part_legend(Markup& out, const std::vector<Part>& parts) {
  out.open("ul", {{"class", "plegend"}});
  for (const Part& part : parts) {
    out.open("li").open("svg", {{"width", "14"}, {"height", "12"}, {"aria-hidden", "true"}});
    out.empty("rect", {{"class", "p-" + part.colour}, {"width", "14"}, {"height", "12"}});
    out.close().text(part.name).close();
  }
  out.close();
}

// The intervals that the captions of most figures of a section explain, for one text above them.
std::string shared_intervals(const std::vector<Figure>& figures) {
  std::map<std::string, int> counts;
  for (const Figure& figure : figures) ++counts[figure.intervals];
  counts.erase("");
  if (counts.empty()) return "";
  return std::ranges::max_element(counts, {}, &std::pair<const std::string, int>::second)->first;
}

// `before`: text before the title. `shared`: how the section has explained intervals already.
void add_figure(Markup& out, const Figure& figure, const std::set<std::string>& formats,
                const std::string& before = "", const std::string& shared = "") {
  const bool wide = is_wide(figure);
  out.open("figure", {{"id", "figure-" + figure.slug},
                      {"class", std::string(figure.own_legend ? "own" : "panel") + (wide ? " span" : "")}});
  out.open("figcaption").leaf("b", {}, before + figure.title);
  if (!figure.unit.empty() && figure.missing.empty()) out.text(" ").leaf("span", {}, figure.unit);
  out.close();
  if (!figure.missing.empty()) {
    out.leaf("div", {{"class", "empty"}}, figure.missing).close();
    return;
  }
  if (figure.own_legend) add_legend(out, figure);
  if (const auto* spans = std::get_if<Spans>(&figure.picture)) add_part_legend(out, spans->parts);
  if (wide) out.open("div", {{"class", "scroll"}}).open("div", {{"class", "wide"}});
  out.add(page_svg(figure));
  if (wide) out.close().close();
  const bool explained = !shared.empty() && figure.intervals == shared;
  const std::string whole = caption_of(figure);
  const std::string caption = explained ? whole.substr(std::min(whole.size(), shared.size() + 1)) : whole;
  if (!caption.empty()) out.leaf("p", {{"class", "said"}}, caption);
  add_details(out, figure, formats);
  out.close().line();
}

// The navigation, which is also the legend.

std::vector<Figure> cell_figures(const Content& content) {
  std::vector<Figure> all;
  for (const CellFigures& figures : content.figures) {
    std::ranges::copy(figures.panels, std::back_inserter(all));
  }
  return all;
}

// The labels of a series in all figures, one per line: "ddp average", "ddp slowest rank".
std::string labels_of(const Series& series, const std::vector<Figure>& figures) {
  std::vector<std::string> labels;
  for (const Figure& figure : figures)
    for (const Series& one : series_of(figure))
      if (one.key == series.key) add_new(labels, one.label);
  return joined(labels, {}, "\n");
}

// Buttons of the series: the arms, then "Ranks", then the ranks, which it shows.
void add_keys(Markup& out, const std::vector<Figure>& figures) {
  bool ranks = false;
  for (const Series& series : legend(figures)) {
    if (series.dash > 0 && !ranks) {
      ranks = true;
      out.leaf("button", {{"type", "button"}, {"id", "ranks"}, {"aria-pressed", "false"}}, "Ranks");
    }
    out.open("button", {{"type", "button"},
                        {"class", series.dash > 0 ? "rk" : "arm"},
                        {"data-key", series_class(series)},
                        {"data-label", labels_of(series, figures)},
                        {"aria-pressed", "true"}});
    out.add(series_sample(series)).text(series.label).close();
  }
}

Markup page_navigation(const Content& content) {
  Markup out;
  out.open("nav", {{"aria-label", "Sections and series"}}).open("div");
  out.open("span", {{"class", "links scroll"}, {"role", "group"}, {"aria-label", "Sections"}});
  out.leaf("a", {{"href", "#verdicts"}}, "Verdicts");
  if (!content.results.table.table.rows.empty()) out.leaf("a", {{"href", "#results"}}, "Results");
  for (const Study& study : content.studies) out.leaf("a", {{"href", "#" + study.slug}}, study.short_title);
  if (!content.scaling.empty()) out.leaf("a", {{"href", "#scaling"}}, "Speed-up");
  for (const CellFigures& figures : content.figures) {
    out.leaf("a", {{"href", "#cell-" + figures.cell->slug}}, figures.cell->label);
  }
  out.leaf("a", {{"href", "#time"}}, "Time");
  if (!content.timelines.empty()) out.leaf("a", {{"href", "#timeline"}}, "Timeline");
  if (!content.data_figures.empty()) out.leaf("a", {{"href", "#data"}}, "Data");
  out.leaf("a", {{"href", "#all-runs"}}, "Runs").close();
  out.open("span", {{"class", "keys scroll"}, {"role", "group"}, {"aria-label", "Show or hide series"}});
  add_keys(out, cell_figures(content));
  if (content.report->published) {
    const std::string label = "Published";
    out.open("button", {{"type", "button"},
                        {"data-key", "gd gd-published"},
                        {"data-label", label},
                        {"aria-pressed", "true"}});
    out.add(line_sample("gd gd-published", "gl")).text(label).close();
  }
  out.close();
  out.open("span", {{"class", "js"}});
  out.leaf("button", {{"id", "theme"}, {"type", "button"}, {"class", "tool"}}, "Theme: auto");
  out.leaf("button", {{"id", "print"}, {"type", "button"}, {"class", "tool"}}, "Print");
  out.close().close().close();
  return out;
}

Markup page_effects(const std::vector<Figure>& effects, const std::set<std::string>& formats) {
  Markup out;
  if (effects.empty()) return out;
  out.open("section", {{"id", effects.front().slug}});
  out.leaf("h2", {}, effects.front().title);
  out.leaf("p", {{"class", "sub"}}, effects.front().caption);
  for (const Figure& figure : effects) {
    out.open("figure", {{"id", "figure-" + figure.slug}}).open("div", {{"class", "scroll"}});
    out.open("div", {{"class", "wide"}}).add(page_svg(figure)).close().close();
    add_details(out, figure, formats);
    out.close().line();
  }
  out.close();
  return out;
}

Markup page_figures(const std::string& id, const std::string& title, const std::vector<Figure>& figures,
                    const std::set<std::string>& formats) {
  Markup out;
  if (figures.empty()) return out;
  out.open("section", {{"id", id}}).leaf("h2", {}, title);
  const std::string shared = shared_intervals(figures);
  if (!shared.empty()) out.leaf("p", {{"class", "sub"}}, shared);
  out.open("div", {{"class", "grid"}}).line();
  for (const Figure& figure : figures)
    add_figure(out, figure, formats, figure.subject.empty() ? "" : figure.subject + " · ", shared);
  out.close().close();
  return out;
}

Markup page_breakdown(const Figure& breakdown, const std::set<std::string>& formats) {
  Markup out;
  out.open("section", {{"id", "time"}}).leaf("h2", {}, breakdown.title);
  if (!breakdown.missing.empty()) {
    out.leaf("p", {{"class", "sub"}}, breakdown.missing).close();
    return out;
  }
  out.leaf("p", {{"class", "sub"}},
           "Length of a bar: percent of the baseline's epoch time. Label of a bar: seconds per epoch. Dashed "
           "line: the baseline, 100 %. " +
               breakdown.caption);
  add_part_legend(out, std::get<Stacks>(breakdown.picture).parts);
  out.open("figure").open("div", {{"class", "scroll"}}).open("div", {{"class", "wide"}});
  out.add(page_svg(breakdown)).close().close();
  out.open("ul", {{"class", "remarks"}});
  for (const std::string& remark : breakdown.remarks) out.leaf("li", {}, remark);
  out.close();
  add_details(out, breakdown, formats);
  out.close().close();
  return out;
}

Markup page_ranks(const Content& content) {
  Markup out;
  Table table = rank_costs(*content.report);
  if (table.rows.empty()) return out;
  out.open("section", {{"id", "sent"}}).leaf("h2", {}, "What ranks send and hold");
  out.leaf("p", {{"class", "sub"}}, std::exchange(table.caption, "In a step, in megabytes"));
  return out.add(html_table(table, "numbers")).close();
}

Markup page_results(const Content& content) {
  Markup out;
  Table table = content.results.table.table;
  if (table.rows.empty()) return out;
  out.open("section", {{"id", "results"}}).leaf("h2", {}, "Results");
  out.leaf("p", {{"class", "sub"}},
           std::exchange(table.caption, "Mean, interval and n per model, arm and metric"));
  return out.add(html_table(table, "numbers results")).close();
}

// Expectations of the experiment file, and whether the finished runs meet them.

// "0.912 – 0.934"; values that are not finite are left out.
std::string range_of(const std::vector<double>& values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  if (finite.empty()) return "–";
  const auto [low, high] = std::ranges::minmax(finite);
  return low == high ? for_table(low) : fmt::format("{} – {}", for_table(low), for_table(high));
}

void add_row(Markup& out, const CheckedExpectation& checked) {
  const std::string text = experiments::to_text(checked.expectation);
  const std::string& title = checked.title;
  out.open("tr").leaf("td", {}, checked.experiment.empty() ? title : title + ", " + checked.experiment);
  out.leaf("td", {}, text.substr(text.find(": ") + 2));
  out.leaf("td", {{"class", "n"}}, std::to_string(checked.values.size()));
  out.leaf("td", {{"class", "n"}}, range_of(checked.values)).open("td");
  out.leaf(checked.holds() ? "span" : "b", {}, outcome_of(checked));
  for (const std::string& line : checked.missed) out.leaf("div", {}, line);
  out.close().close().line();
}

// The table of all runs in the order of the plan. The script can sort and filter it.

struct Column {
  const char* title;
  bool number;
  const char* value = "";  // the final value of a run in it: left out if no run has one
};
constexpr const char* task_column = "Task metric";  // likewise
constexpr const char* seed_column = "Seed";         // followed by the varying axes
constexpr std::array<Column, 15> run_columns{{{"Run", false},
                                              {"Model", false},
                                              {"Strategy", false},
                                              {seed_column, true},
                                              {"Epochs", true},
                                              {"Val. acc. %", true, "validation_accuracy"},
                                              {"Val. loss", true, "validation_loss"},
                                              {"Test acc. %", true, "test_accuracy"},
                                              {task_column, false},
                                              {"s/epoch", true, "epoch_train_seconds"},
                                              {"J/epoch", true, "epoch_energy_joules"},
                                              {"Peak GiB", true, "peak_device_bytes"},
                                              {"Wall s", true},
                                              {"Status", false},
                                              {"Remarks", false}}};

void add_number(Markup& out, double value, const std::string& text) {
  out.leaf("td", {{"class", "n"}, {"data-value", std::isfinite(value) ? plain_number(value, 9) : ""}}, text);
}

std::string percent(double fraction) {
  return fixed(100 * fraction, 2);
}

// "BLEU 21.3, perplexity 12.41", "PSNR 18.22 dB": test set metrics, scores first.
std::string of_the_task(const RunRow& run) {
  std::vector<std::string> texts;
  const std::deque<Metric>& all = metrics();
  for (auto metric = all.rbegin(); metric != all.rend(); ++metric) {
    const double value = metric->kind->scale * value_in(run, metric->column);
    if (metric->task.empty() || !metric->epoch_column.empty() || !std::isfinite(value)) continue;
    const std::string number = metric->higher_is_better() ? fixed(value, 2) : for_table(value);
    texts.push_back(metric->quantity + " " + number + metric->kind->suffix());
  }
  return joined(texts);
}

// The final values that any run has.
struct Measured {
  bool task = false;
  std::set<std::string> values;

  explicit Measured(const std::vector<RunRow>& runs) {
    for (const RunRow& run : runs) {
      task |= !of_the_task(run).empty();
      for (const auto& [name, value] : run.values) values.insert(name);
    }
  }
  bool shows(const Column& column) const {
    if (column.title == task_column) return task;
    return *column.value == '\0' || values.contains(column.value);
  }
};

std::string remarks(const RunRow& run) {
  std::vector<std::string> texts;
  if (!run.times_count)
    texts.push_back("times not compared" + (run.times_problem ? ": " + *run.times_problem : ""));
  if (run.disturbed_epochs > 0)
    texts.push_back(fmt::format("times of {} left out", counted(run.disturbed_epochs, "epoch")));
  if (run.attempts > 1) texts.push_back(fmt::format("{} attempts", run.attempts));
  if (!run.failure.empty()) texts.push_back(run.failure);
  return joined(texts);
}

bool has_numbers(const Report& report, const std::string& axis) {
  return std::ranges::all_of(report.runs, [&](const RunRow& run) {
    const Value* value = value_or_null(run.settings, axis);
    return value == nullptr || std::holds_alternative<std::int64_t>(*value) ||
           std::holds_alternative<double>(*value);
  });
}

void add_axis(Markup& out, const RunRow& run, const std::string& name) {
  const std::string text = setting_text(run, name);
  const Value* const set = value_or_null(run.settings, name);  // std::get_if takes none
  if (const auto* integer = std::get_if<std::int64_t>(set))
    add_number(out, static_cast<double>(*integer), text);
  else if (const auto* number = std::get_if<double>(set))
    add_number(out, *number, text);
  else
    out.leaf("td", {}, text);
}

void add_row(Markup& out, const RunRow& run, const std::vector<std::string>& axes, const Measured& measured) {
  out.open("tr", {{"class", run.status == "failed" ? "failed" : "run"}});
  out.leaf("td", {{"class", "name"}}, run.key).leaf("td", {}, run.title).leaf("td", {}, run.strategy);
  add_number(out, static_cast<double>(run.seed), std::to_string(run.seed));
  for (const std::string& axis : axes) add_axis(out, run, axis);
  add_number(out, static_cast<double>(run.epochs_done),
             run.epochs_done == run.epochs ? std::to_string(run.epochs)
                                           : fmt::format("{}/{}", run.epochs_done, run.epochs));
  const auto add = [&](const char* column, std::string (*text)(double), double scale = 1) {
    if (!measured.values.contains(column)) return;
    const double value = scale * value_in(run, column);
    add_number(out, value, text(value));
  };
  const auto number = [](double value) { return for_table(value); };
  add("validation_accuracy", percent);
  add("validation_loss", number);
  add("test_accuracy", percent);
  if (measured.task) out.leaf("td", {}, of_the_task(run));
  add("epoch_train_seconds", number);
  add("epoch_energy_joules", number);
  add("peak_device_bytes", number, 0x1p-30);
  add_number(out, run.total_seconds, for_table(run.total_seconds));
  out.leaf("td", {}, run.status).leaf("td", {{"class", "why"}}, remarks(run)).close().line();
}

Markup page_expectations(const Content& content) {
  Markup out;
  if (content.report->expectations.empty()) return out;
  out.open("section", {{"id", "expectations"}}).leaf("h2", {}, "Expectations of the experiment file");
  Table head;
  head.columns = {"Model", "Expected of each run", right_column("Finished runs"), right_column("Values"),
                  "Outcome"};
  open_html_table(out, head, "numbers");
  out.line();
  for (const CheckedExpectation& checked : content.report->expectations) add_row(out, checked);
  out.close().close().close().close();
  return out;
}

Markup page_runs(const Content& content) {
  const Report& report = *content.report;
  const Measured measured(report.runs);
  Markup out;
  out.open("section", {{"id", "all-runs"}}).leaf("h2", {}, "All runs");
  out.open("span", {{"class", "js"}});
  out.leaf("label", {{"class", "sr"}, {"for", "filter"}}, "Filter the runs");
  out.empty("input", {{"id", "filter"}, {"type", "search"}, {"placeholder", "Filter by any text"}});
  out.text(" ").leaf("span", {{"id", "filtered"}, {"aria-live", "polite"}}, "").close();
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", "runs"}, {"id", "runs"}});
  out.leaf("caption", {{"class", "sr"}}, "All runs. The column headings are buttons that sort the table.");
  out.open("thead").open("tr");
  std::vector<std::string> axes = report.varying;
  std::erase(axes, "epochs");  // has its own column
  const auto add_head = [&](const std::string& title, bool number) {
    out.open("th", {{"scope", "col"}, {"class", number ? "n" : "t"}});
    out.leaf("button", {{"type", "button"}}, title).close();
  };
  for (const Column& column : run_columns) {
    if (measured.shows(column)) add_head(column.title, column.number);
    if (column.title != seed_column) continue;
    for (const std::string& axis : axes) add_head(axis, has_numbers(report, axis));
  }
  out.close().close().open("tbody").line();
  for (const RunRow& run : report.runs) add_row(out, run, axes, measured);
  out.close().close().close().close();
  return out;
}

}  // namespace

Markup series_sample(const Series& series) {
  return line_sample(series_class(series), "l");
}

Markup page_panels(const CellFigures& figures, const std::set<std::string>& formats) {
  Markup out;
  out.open("section", {{"class", "model"}, {"id", "cell-" + figures.cell->slug}});
  out.open("h2").text(figures.cell->label).leaf("small", {}, figures.cell->dataset).close();
  const std::string shared = shared_intervals(figures.panels);
  for (const std::string& text : {figures.lacking, shared})
    if (!text.empty()) out.leaf("p", {{"class", "sub"}}, text);
  out.open("div", {{"class", "printkeys"}});
  for (const Series& series : legend(figures.panels)) {
    out.open("span", {{"class", series.dash > 0 ? "rk" : "arm"}});
    out.add(series_sample(series)).text(series.label).close();
  }
  out.close().open("div", {{"class", "grid"}}).line();
  for (const Figure& figure : figures.panels) add_figure(out, figure, formats, "", shared);
  out.close().close();
  return out;
}

std::string page_html(const Content& content, const std::set<std::string>& formats) {
  const std::string style = std::string(page_css()) + std::string(figure_css());
  Markup out;
  out.verbatim("<!DOCTYPE html>\n").open("html", {{"lang", "en"}}).line();
  add_head(out, content, style);
  out.open("body").line();
  out.leaf("a", {{"class", "skip"}, {"href", "#verdicts"}}, "Skip to the verdicts").line();
  out.add(page_top(content)).line().add(page_navigation(content)).line();
  out.open("main").line();
  const std::vector<Comparison>& comparisons = content.report->comparisons;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    out.add(page_verdicts(comparisons[i], content.palette, i == 0)).line();
    if (i == 0) out.add(page_results(content)).line();
    out.add(page_effects(content.effects[i], formats)).line();
  }
  out.add(page_expectations(content)).line();
  for (const Study& study : content.studies)
    out.add(page_figures(study.slug, study.title, study.figures, formats)).line();
  out.add(page_figures("scaling", "Speed-up and efficiency of all models", content.scaling, formats)).line();
  for (const CellFigures& figures : content.figures) out.add(page_panels(figures, formats)).line();
  out.add(page_breakdown(content.breakdown, formats)).line();
  out.add(page_ranks(content)).line();
  out.add(page_figures("timeline", "Timeline of one step", content.timelines, formats)).line();
  out.add(page_figures("data", "Data", content.data_figures, formats)).line();
  out.add(page_runs(content)).line();
  out.add(page_provenance(content)).line();
  out.close().line();
  out.leaf("footer", {},
           "Made by trainyard from the results database only. The same database always gives the same page.")
      .line();
  out.open("div", {{"id", "tip"}, {"hidden", "hidden"}}).close();
  out.open("div", {{"id", "live"}, {"class", "sr"}, {"aria-live", "polite"}}).close().line();
  out.open("script").verbatim(page_js()).close().line();
  out.close().close().line();
  return out.str();
}

}  // namespace trainyard::reports
