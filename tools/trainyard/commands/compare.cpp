// trainyard compare: prints the verdicts of an experiment or of two groups of its runs, with a gate for CI.
#include <algorithm>
#include <array>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "reports/analysis/analysis.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/answer/why.h"
#include "reports/content/paper_tables.h"
#include "reports/document/report_json.h"
#include "reports/format/aligned_text.h"
#include "reports/format/table.h"
#include "reports/results/report_data.h"
#include "reports/results/runs_file.h"
#include "reports/verdicts/first_plan.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/compare_gate.h"

namespace trainyard::tools {

namespace {

using reports::Cell;
using reports::Comparison;
using reports::Verdict;

struct Compared {
  reports::Report report;
  reports::Answer answer;
  std::size_t width = 0;  // columns of the terminal, 0 for a file or a pipe
};

struct VerdictFormat {
  std::string name;
  std::string (*text)(const Compared&);
};

std::string seeds(const Verdict& verdict) {
  if (!verdict.seeds_needed) return verdict.cannot_be_resolved ? "> 100" : "–";
  return (verdict.cannot_be_resolved ? "≥ " : "≈ ") + std::to_string(*verdict.seeds_needed);
}

reports::Table table_of(const reports::Report& report) {
  using reports::right_column;
  reports::Table table;
  table.columns = {"model",
                   "arm",
                   "metric",
                   "verdict",
                   right_column("effect"),
                   right_column("95 % interval"),
                   right_column("90 % interval"),
                   right_column("p"),
                   "hypothesis",
                   right_column("n"),
                   right_column("seeds needed")};
  for (const Comparison& comparison : report.comparisons)
    for (const Cell& cell : comparison.cells)
      for (const Verdict& verdict : cell.verdicts)
        table.rows.push_back({cell.label, verdict.arm, phase_and_metric(verdict),
                              text_of(verdict.kind) + marks_text(verdict.caveats) +
                                  (comparison.planned || verdict.verified ? "" : ", NOT VERIFIED"),
                              effect_text(verdict), interval_text(verdict), narrow_interval_text(verdict),
                              reports::p_text(verdict.p), verdict.hypothesis, verdict.n, seeds(verdict)});
  table.notes = reports::grouped_remarks(report.comparisons);
  return table;
}

std::string as_table(const Compared& compared) {
  std::string text;
  for (const std::vector<std::string>& paragraphs : compared.answer.paragraphs)
    text += reports::paragraph(joined(paragraphs, {}, " "), compared.width) + "\n";
  for (const std::string& fact : reports::answer_facts(compared.answer))
    text += reports::paragraph(fact, compared.width);
  text += (compared.answer.machine.empty() ? "" : "\n") +
          reports::aligned_table(table_of(compared.report), compared.width);
  if (const std::string why = reports::why_text(compared.report.comparisons, compared.width); !why.empty())
    text += "\nWhy\n" + why;
  const std::string published = reports::published_numbers_text(compared.report, compared.width);
  return published.empty() ? text : text + "\n" + published;
}

std::string as_markdown(const Compared& compared) {
  const reports::PaperTable published = reports::published_numbers(compared.report);
  return reports::markdown_table(table_of(compared.report)) +
         (published.table.rows.empty() ? "" : "\n" + reports::markdown_table(published.table));
}

std::string as_latex(const Compared& compared) {
  std::string text;
  for (const Comparison& comparison : compared.report.comparisons)
    if (has_verdicts(comparison)) text += latex_files(reports::effects_table(comparison)).front().second;
  if (const reports::PaperTable published = reports::published_numbers(compared.report);
      !published.table.rows.empty())
    text += latex_files(published).front().second;
  return text;
}

// A part of report.json.
std::string as_json(const Compared& compared) {
  reports::OrderedJson object{{"format", reports::report_format}, {"name", compared.report.name}};
  object["comparisons"] = reports::OrderedJson::array();
  for (const Comparison& comparison : compared.report.comparisons)
    object["comparisons"].push_back(reports::json_of(comparison));
  object["published_numbers"] = reports::json_of(compared.report.published_numbers);
  return object.dump(2, ' ', false, reports::OrderedJson::error_handler_t::replace) + "\n";
}

std::string as_csv(const Compared& compared) {
  return reports::csv_table(reports::verdict_numbers(compared.report.comparisons));
}

const std::array<VerdictFormat, 5> verdict_formats{{{"table", as_table},
                                                    {"json", as_json},
                                                    {"markdown", as_markdown},
                                                    {"latex", as_latex},
                                                    {"csv", as_csv}}};

struct CompareOptions {
  std::vector<std::string> groups;  // A and B, or none
  std::string experiment;
  std::vector<std::string> differs;
  std::string format = "table";
  std::vector<std::string> fail_on;
  std::vector<std::string> metrics;
  std::optional<std::filesystem::path> yard;
  reports::RunsFile runs;  // no file: those of the yard
};

std::vector<reports::JudgedComparison> comparisons(reports::ReportData& data, const CompareOptions& options) {
  if (!options.groups.empty())
    return {reports::compare_groups(data, {options.groups[0], options.groups[1], options.differs})};
  if (data.plan.compare.empty())
    throw UserError("experiment \"" + data.experiment + "\" compares nothing",
                    "name two groups, as in `trainyard compare strategy=single strategy=ddp`");
  std::vector<reports::JudgedComparison> all;
  for (experiments::Compare compare : data.plan.compare) {
    compare.differs.insert(compare.differs.end(), options.differs.begin(), options.differs.end());
    all.push_back({compare, reports::judge(data, compare)});
  }
  return all;
}

bool any_verdicts(const std::vector<reports::Comparison>& comparisons) {
  return std::ranges::any_of(comparisons, [](const reports::Comparison& one) { return has_verdicts(one); });
}

// Leaves the verdicts on these metrics. Their p-values stay, because a family of tests has only one metric.
void keep_metrics(Compared& compared, const std::set<std::string>& metrics) {
  for (reports::Comparison& comparison : compared.report.comparisons)
    for (reports::Cell& cell : comparison.cells)
      std::erase_if(cell.verdicts,
                    [&](const reports::Verdict& verdict) { return !metrics.contains(verdict.metric); });
  compared.answer.paragraphs.clear();  // its sentences are about all metrics
  compared.answer.published.clear();
  compared.report.published_numbers.clear();
}

Compared compared_in_yard(const CompareOptions& options) {
  const auto database = open_yard(options.yard);
  auto data = reports::gather_results(database, experiment_named(database, options.experiment));
  reports::check_differs(data, options.differs);
  const std::vector<experiments::Compare> planned = data.plan.compare;
  const auto judged = comparisons(data, options);
  Compared compared{reports::make_report(data, judged), {}, output_width()};
  std::vector<reports::Comparison>& all = compared.report.comparisons;
  for (reports::Comparison& comparison : all)
    comparison.planned = std::ranges::any_of(planned, [&](const experiments::Compare& one) {
      return reports::same_comparison(one, comparison.compare);
    });
  compared.answer = reports::make_answer(compared.report);
  if (!any_verdicts(all))  // must not pass `--fail-on`
    throw UserError(
        "nothing to compare: experiment \"" + data.experiment + "\" has no arm besides its baseline",
        "name two groups, as in `trainyard compare batch=64 batch=128`");
  return compared;
}

Compared compared_in_file(const CompareOptions& options) {
  reports::RunsFile file = options.runs;
  file.metrics = options.metrics;
  const auto data = reports::read_runs(file);
  const experiments::Compare& compare = data.plan.compare.front();
  Compared compared{
      reports::make_report(data, {{compare, reports::judge(data, compare)}}), {}, output_width()};
  Comparison& comparison = compared.report.comparisons.front();
  if (!has_verdicts(comparison)) throw UserError(data.experiment + ": no run has a number in these metrics");
  comparison.planned = false;
  const std::string pairs = compare.pair.empty() ? "not paired" : "paired by " + joined(compare.pair);
  compared.answer.paragraphs = {{fmt::format(
      "{}. {} of {}, {}. trainyard did not train them. It cannot check data, first weights, "
      "batches, host and load, and whether the comparison was planned before the results were seen.",
      subtitle(comparison), counted(data.runs.size(), "run"), data.experiment, pairs)}};
  return compared;
}

int compare(const CompareOptions& options) {
  if (options.groups.size() == 1)
    throw UserError("compare needs two groups of runs, or none to compare what the experiment file compares");
  const std::vector<const FailOnWord*> fail_on = parse_fail_on(options.fail_on);
  const bool of_file = !options.runs.file.empty();
  if (of_file && !(options.groups.empty() && options.experiment.empty() && options.differs.empty()))
    throw UserError("--from judges the runs of a file", "leave out A, B, --experiment and --differs");
  Compared compared = of_file ? compared_in_file(options) : compared_in_yard(options);
  // after the yard is read, because it has metrics of the user
  const auto metrics = of_file ? std::set<std::string>{} : reports::metrics_named(options.metrics);
  const std::vector<Comparison>& all = compared.report.comparisons;
  const std::vector<std::string> failures = gate_failures(all, fail_on, metrics);
  if (!metrics.empty()) keep_metrics(compared, metrics);
  if (!any_verdicts(all))
    throw UserError("nothing to compare: no arm has a verdict on " + joined(metrics),
                    "leave out --metric to see the metrics of these runs");
  const auto format = std::ranges::find(verdict_formats, options.format, &VerdictFormat::name);
  std::cout << format->text(compared);
  // not on standard output, which has only the verdicts, in any format
  for (const std::string& line : failures)
    std::cerr << reports::paragraph("fails --fail-on " + joined(options.fail_on, {}, ",") + ": " + line,
                                    output_width(2));
  return failures.empty() ? done : gate_failed;
}

std::string about_fail_on() {
  std::string text = "exit with code 3 if any verdict is one of these (docs/comparing.md):";
  for (const FailOnWord& word : fail_on_words()) text += "\n" + word.name + ": " + word.about;
  return text;
}

}  // namespace

void add_compare(CLI::App& program, Invocation& invocation) {
  const auto [command, options] = add_verb(
      program, invocation, "compare",
      "print the verdicts of an experiment, or of two groups of runs\n\n"
      "Without A and B it compares what the experiment file compares. An effect is the change of the arm "
      "against the baseline: in percent for times, losses and perplexities, in percentage points for "
      "accuracies, in dB for PSNR, and in units of loss if the loss is small.",
      compare);
  command
      ->add_option("A B", options->groups,
                   "baseline and arm: value of the axis, NAME=VALUE,…, or a run's key")
      ->expected(0, 2);
  command->add_option("--experiment", options->experiment, "its name (default: the one run last)");
  command
      ->add_option("--differs", options->differs,
                   "an intended difference of the arms, as in the file: --differs batch")
      ->delimiter(',');
  command->add_option("--format", options->format, "how to print it")
      ->check(one_of(names_of(verdict_formats, &VerdictFormat::name)))
      ->capture_default_str();
  command->add_option("--fail-on", options->fail_on, about_fail_on())->delimiter(',')->type_name("WORD,…");
  command
      ->add_option(
          "--metric", options->metrics,
          "only these metrics, in what is printed and for --fail-on: accuracy, or test-accuracy (can be "
          "repeated); of --from its columns of numbers")
      ->delimiter(',')
      ->type_name("METRIC,…");
  add_yard_option(*command, options->yard);
  reports::RunsFile& runs = options->runs;
  auto* from = command->add_option("--from", runs.file,
                                   "judge runs of a CSV file instead, one row per run; -: standard input");
  refuse_empty(from->type_name("FILE"));
  command->add_option("--arm", runs.arm, "the compared column of the file")->type_name("COLUMN");
  command->add_option("--baseline", runs.baseline, "its value in the runs of the baseline")
      ->type_name("VALUE");
  const auto list = [command = command, from](const char* name, std::vector<std::string>& values,
                                              const char* type, const char* about) {
    command->add_option(name, values, about)->delimiter(',')->type_name(type)->needs(from);
  };
  list("--pair", runs.pair, "COLUMN,…", "columns that are equal in the runs of a pair (default: no pairs)");
  list("--by", runs.by, "COLUMN,…", "columns that make cells");
  list("--kind", runs.kinds, "KIND,…",
       "loss, accuracy, score or time, or METRIC=KIND (default: by the name of the metric)");
  list("--better", runs.better, "WAY,…", "lower or higher, or METRIC=WAY (default: by its kind)");
  list("--unit", runs.units, "UNIT,…", "% if accuracies are in percent, or METRIC=%");
  list("--margin", runs.margins, "NUMBER,…",
       "the margin in the unit of the effect, or METRIC=NUMBER (default: by its kind)");
  for (const char* needed : {"--arm", "--baseline"}) from->needs(command->get_option(needed)->needs(from));
  from->needs(command->get_option("--metric"));
}

}  // namespace trainyard::tools
