// trainyard compare: prints the verdicts of an experiment or of two groups of its runs, with a gate for CI.
#include <algorithm>
#include <array>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "reports/analysis/analysis.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/content/paper_tables.h"
#include "reports/document/report_json.h"
#include "reports/format/aligned_text.h"
#include "reports/format/table.h"
#include "reports/results/report_data.h"
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
                              text_of(verdict.kind) + marks_text(verdict.caveats), effect_text(verdict),
                              interval_text(verdict), narrow_interval_text(verdict),
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
  text += "\n" + reports::aligned_table(table_of(compared.report), compared.width);
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

// Failures go to standard error. Standard output has only the verdicts, in any format.
int gate(const std::vector<std::string>& failures, const CompareOptions& options) {
  for (const std::string& line : failures)
    std::cerr << reports::paragraph("fails --fail-on " + joined(options.fail_on, {}, ",") + ": " + line,
                                    output_width(2));
  return failures.empty() ? done : gate_failed;
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

int compare(const CompareOptions& options) {
  if (options.groups.size() == 1)
    throw UserError("compare needs two groups of runs, or none to compare what the experiment file compares");
  const std::vector<FailOn> fail_on = parse_fail_on(options.fail_on);
  const std::set<std::string> metrics = reports::metrics_named(options.metrics);
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
  const std::vector<std::string> failures = gate_failures(all, fail_on, metrics);
  if (!any_verdicts(all))  // must not pass `--fail-on`
    throw UserError(
        "nothing to compare: experiment \"" + data.experiment + "\" has no arm besides its baseline",
        "name two groups, as in `trainyard compare batch=64 batch=128`");
  if (!metrics.empty()) keep_metrics(compared, metrics);
  if (!any_verdicts(all))
    throw UserError("nothing to compare: no arm has a verdict on " + joined(metrics),
                    "leave out --metric to see the metrics of these runs");
  const auto format = std::ranges::find(verdict_formats, options.format, &VerdictFormat::name);
  std::cout << format->text(compared);
  return gate(failures, options);
}

std::string about_fail_on() {
  std::string text = "exit with code 3 if any verdict is one of these (docs/comparing.md):";
  for (const FailOnWord& word : fail_on_words()) text += "\n" + word.name + ": " + word.about;
  return text;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  names.reserve(verdict_formats.size());
  for (const auto& format : verdict_formats) names.push_back(format.name);
  return names;
}

}  // namespace

void add_compare(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "compare",
      "print the verdicts of an experiment, or of two groups of runs\n\n"
      "Without A and B it compares what the experiment file compares. An effect is the change of the arm "
      "against the baseline: in percent for times, losses and perplexities, in percentage points for "
      "accuracies, in dB for PSNR, and in units of loss if the loss is small.");
  auto options = std::make_shared<CompareOptions>();
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
      ->check(one_of(format_names()))
      ->capture_default_str();
  command->add_option("--fail-on", options->fail_on, about_fail_on())->delimiter(',')->type_name("WORD,…");
  command
      ->add_option(
          "--metric", options->metrics,
          "only these metrics, in what is printed and for --fail-on: accuracy, or test-accuracy (can be "
          "repeated)")
      ->delimiter(',')
      ->type_name("METRIC,…");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return compare(*options); }; });
}

}  // namespace trainyard::tools
