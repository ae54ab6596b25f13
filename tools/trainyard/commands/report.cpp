// trainyard report | compare. docs/comparing.md describes the JSON of `compare`.
#include "reports/report/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "experiments/config/config.h"
#include "orchestrator/yard/yard.h"
#include "reports/answer/answer.h"
#include "reports/content/paper_tables.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"
#include "reports/results/provenance.h"
#include "reports/results/report_data.h"
#include "reports/verdicts/comparison.h"
#include "reports/verdicts/verdict_text.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/compare_gate.h"

namespace trainyard::tools {

struct Compared {
  std::string experiment;
  std::vector<reports::Comparison> comparisons;
  reports::Answer answer;
  std::vector<reports::VerdictRecord> records;  // of all comparisons, in their order
  bool planned = true;                          // false: the file does not compare these groups
  std::size_t width = 0;                        // columns of the terminal, 0 for a file or a pipe
};

struct VerdictFormat {
  std::string name;
  std::string (*text)(const Compared&);
};
std::span<const VerdictFormat> verdict_formats();  // table, json, markdown, latex, csv

// trainyard report: writes the page and its figures again, from the database only.

namespace {

std::vector<std::string> names_of(const std::set<std::string>& chosen) {
  return {chosen.begin(), chosen.end()};
}

struct ReportOptions {
  reports::Selection selection;
  std::vector<std::string> formats = names_of(reports::usual_formats());
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> yard;
  std::string width;  // of figures: "7cm"; empty: as on the page
  std::string height;
  std::optional<double> font_points;
  bool no_title = false;
  bool ranks = false;
};

// The size of the pictures. UserError if no format has pictures.
reports::FigureSize figure_size_of(const ReportOptions& options) {
  const reports::FigureSize size =
      reports::figure_size(options.width, options.height, options.font_points, !options.no_title);
  const bool pictures = std::ranges::any_of(reports::report_formats(), [&](const reports::Format& format) {
    return format.picture && std::ranges::find(options.formats, format.name) != options.formats.end();
  });
  if ((size.sized() || options.no_title) && !pictures)
    throw UserError("--width and --no-title need a format of pictures",
                    "add one with --format: svg, png or pdf");
  return size;
}

// The named experiments without duplicates, or the one that was run last. UserError if a name is unknown.
std::vector<std::string> experiments_named(const db::Database& database,
                                           const std::vector<std::string>& names) {
  if (names.empty()) return {experiment_named(database, "")};
  std::vector<std::string> found;
  for (const auto& name : names) {
    const auto experiment = experiment_named(database, name);
    if (std::ranges::find(found, experiment) == found.end()) found.push_back(experiment);
  }
  return found;
}

std::string folder_name(const std::vector<std::string>& experiments) {
  std::string name;
  for (const auto& experiment : experiments) name += (name.empty() ? "" : " and ") + experiment;
  return experiments::experiment_name(name);
}

int report(ReportOptions options) {
  const reports::FigureSize size = figure_size_of(options);
  const auto database = open_yard(options.yard);
  auto& selection = options.selection;
  selection.experiments = experiments_named(database, selection.experiments);
  const auto data = reports::gather(database, selection);
  const auto content = reports::compose(data);
  const auto folder = options.out
                          ? *options.out
                          : orchestrator::yard_from(options.yard).report(folder_name(selection.experiments));
  const auto written = reports::write_report(
      content, folder, {options.formats.begin(), options.formats.end()}, size, options.ranks);
  std::cout << reports::terminal_table(content, output_width()) << '\n'
            << "wrote " << counted(written.size(), "file") << "; open " << written.front().string() << '\n';
  const auto missed = reports::missed_expectations(content.expectations);
  for (const auto& line : missed) std::cerr << "missed: " << line << '\n';
  return missed.empty() ? done : run_failed;
}

}  // namespace

void add_report(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("report", "write the report of an experiment again from the database");
  auto options = std::make_shared<ReportOptions>();
  auto& selection = options->selection;
  command->add_option("EXPERIMENT", selection.experiments,
                      "experiments of the report (default: the one run last)");
  command->add_option("--where", selection.where, "only runs with this value: model=mlp (can be repeated)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--since", selection.since,
                   "only runs with a record since then, UTC: 2026-11-20 or 2026-11-20T09:30")
      ->type_name("TIME");
  std::vector<std::string> names;
  std::string help = "one or more, separated by commas:";
  for (const auto& format : reports::report_formats()) {
    names.push_back(format.name);
    help += "\n" + format.name + ": " + format.files;
  }
  command->add_option("--format", options->formats, help)->delimiter(',')->check(one_of(names));
  command->add_flag("--ranks", options->ranks, "draw the curves of single ranks too, in the figure files");
  refuse_empty(
      command
          ->add_option("--out", options->out, "folder to write to (default: reports/EXPERIMENT in the yard)")
          ->type_name("DIR"));
  command
      ->add_option("--width", options->width,
                   "width of the figures on paper, which are laid out for it: 7cm, 70mm, 2.75in, 200pt")
      ->type_name("LENGTH");
  command
      ->add_option("--height", options->height,
                   "their height; the time breakdown and effects take what they need")
      ->type_name("LENGTH");
  command->add_option("--font-size", options->font_points, "size of their text in points (default: 9)")
      ->type_name("POINTS");
  command->add_flag("--no-title", options->no_title,
                    "no title and caption in the figures; figures/NAME.txt has them");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return report(*options); }; });
}

// trainyard compare: prints the verdicts of an experiment or of two groups of its runs, with a gate for CI.

namespace {

struct CompareOptions {
  std::vector<std::string> groups;  // A and B, or none
  std::string experiment;
  std::vector<std::string> differs;
  std::string format = "table";
  std::vector<std::string> fail_on;
  std::vector<std::string> metrics;
  std::optional<std::filesystem::path> yard;
};

std::vector<reports::Comparison> comparisons(reports::ReportData& data, const CompareOptions& options) {
  if (!options.groups.empty())
    return {reports::compare_groups(data, {options.groups[0], options.groups[1], options.differs})};
  if (data.plan.compare.empty())
    throw UserError("experiment \"" + data.experiment + "\" compares nothing",
                    "name two groups, as in `trainyard compare strategy=single strategy=ddp`");
  std::vector<reports::Comparison> all;
  for (experiments::Compare compare : data.plan.compare) {
    compare.differs.insert(compare.differs.end(), options.differs.begin(), options.differs.end());
    all.push_back({compare, reports::judge(data, compare)});
  }
  return all;
}

bool is_planned(const experiments::Compare& compare, const std::vector<experiments::Compare>& planned) {
  return std::ranges::any_of(planned, [&](const experiments::Compare& one) {
    return one.axis == compare.axis && one.baseline == compare.baseline;
  });
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
  for (reports::Comparison& comparison : compared.comparisons)
    for (reports::CellVerdicts& judged : comparison.cells)
      std::erase_if(judged.verdicts,
                    [&](const reports::Verdict& verdict) { return !metrics.contains(verdict.metric); });
  compared.answer.paragraphs.clear();  // its sentences are about all metrics
  compared.answer.published.clear();
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
  Compared compared{data.experiment, comparisons(data, options), {}, {}, true, output_width()};
  compared.answer = reports::make_answer(data, compared.comparisons, reports::provenance(data));
  const std::vector<std::string> failures = gate_failures(compared.comparisons, fail_on, metrics);
  const bool compares = std::ranges::any_of(compared.comparisons, reports::has_verdicts);
  if (!metrics.empty()) keep_metrics(compared, metrics);
  for (const auto& comparison : compared.comparisons) {
    const auto more = reports::verdict_records(comparison);
    compared.records.insert(compared.records.end(), more.begin(), more.end());
    compared.planned = compared.planned && is_planned(comparison.compare, planned);
  }
  if (compared.records.empty() && compares)
    throw UserError("nothing to compare: no arm has a verdict on " + joined(metrics),
                    "leave out --metric to see the metrics of these runs");
  if (compared.records.empty())  // must not pass `--fail-on`
    throw UserError(
        "nothing to compare: experiment \"" + data.experiment + "\" has no arm besides its baseline",
        "name two groups, as in `trainyard compare batch=64 batch=128`");
  const auto format = std::ranges::find(verdict_formats(), options.format, &VerdictFormat::name);
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
  for (const auto& format : verdict_formats()) names.push_back(format.name);
  return names;
}

}  // namespace

void add_compare(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "compare",
      "print the verdicts of an experiment, or compare two groups of runs\n\n"
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

namespace {

using reports::VerdictRecord;
using Json = nlohmann::ordered_json;

std::string seeds(const VerdictRecord& record) {
  if (record.cannot_be_resolved) return "> 100";
  return record.seeds_needed ? "≈ " + std::to_string(*record.seeds_needed) : "–";
}

reports::Table table_of(const std::vector<VerdictRecord>& records) {
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
  for (const auto& record : records)
    table.rows.push_back({record.label, record.arm, record.phase + " " + record.metric,
                          text_of(record.verdict) + reports::marks_text(record.caveats), record.effect_text,
                          record.ci95_text, record.ci90_text, reports::p_text(record.p), record.hypothesis,
                          record.n, seeds(record)});
  table.notes = reports::grouped_remarks(records);
  return table;
}

std::string as_table(const Compared& compared) {
  std::string text;
  for (const std::vector<std::string>& paragraphs : compared.answer.paragraphs)
    text += reports::paragraph(reports::as_one_paragraph(paragraphs), compared.width) + "\n";
  for (const std::string& fact : reports::answer_facts(compared.answer))
    text += reports::paragraph(fact, compared.width);
  text += "\n";
  return text + reports::aligned_table(table_of(compared.records), compared.width);
}

std::string as_markdown(const Compared& compared) {
  return reports::markdown_table(table_of(compared.records));
}

std::string as_latex(const Compared& compared) {
  reports::Table table;
  table.columns = reports::effect_columns();
  table.caption =
      "Effects with 95 % and 90 % intervals; p after Holm's correction, with its hypothesis; n: pairs.";
  std::string heading;
  for (const auto& record : compared.records) {
    const std::string arm = record.label + ": " + record.arm + " against " + record.baseline +
                            (record.not_verified.empty() ? "" : ". " + record.not_verified + ".");
    if (arm != heading) table.rows.push_back({heading = arm});
    table.rows.push_back({record.phase + " " + record.metric, reports::word_with_reason(record),
                          record.effect_text, record.ci95_text, record.ci90_text,
                          reports::p_with_hypothesis(record.p, record.hypothesis), record.n});
  }
  return reports::latex_table(table, "tab:compare", reports::LatexLayout::long_table);
}

constexpr int schema_version = 1;  // of the JSON: docs/comparing.md

// A number in the shortest form that reads back as the same double, or null.
Json json_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_interval(const std::optional<reports::Interval>& ends) {
  return ends ? Json{json_number(ends->low), json_number(ends->high)} : Json(nullptr);
}

Json json_look(const VerdictRecord& record) {
  return {{"number", record.look},
          {"of", record.looks},
          {"alpha", record.alpha},
          {"level", json_number(record.level)}};
}

Json json_record(const VerdictRecord& record) {
  Json object{
      {"model", record.model.empty() ? Json(nullptr) : Json(record.model)},
      {"cell", record.label},
      {"axes", Json::object()},
      {"metric", record.metric},
      {"phase", record.phase},
      {"baseline", record.baseline},
      {"arm", record.arm},
      {"verdict", text_of(record.verdict)},
      {"verified", record.verified},
      {"marks", reports::marks_of(record.caveats)},
      {"caveats", Json::array()},
      {"reason", record.reason},
      {"effect", json_number(record.effect)},
      {"unit", record.unit},
      {"margin", json_interval(record.margin)},
      {"ci95", json_interval(record.ci95)},
      {"ci90", json_interval(record.ci90)},
      {"p", json_number(record.p)},
      {"hypothesis", record.hypothesis},
      {"look", json_look(record)},
      {"n", record.n},
      {"means", {{"baseline", json_number(record.baseline_mean)}, {"arm", json_number(record.arm_mean)}}},
      {"runs", {{"baseline", record.baseline_runs}, {"arm", record.arm_runs}}},
      {"left_out", record.left_out},
      {"seeds_needed", record.seeds_needed ? Json(*record.seeds_needed) : Json(nullptr)}};
  for (const auto& [name, value] : record.further) object["axes"][name] = value;
  for (const reports::Caveat& caveat : record.caveats)
    object["caveats"].push_back(reports::caveat_text(caveat));
  return object;
}

Json json_procedure(const experiments::Compare& compare) {
  return {{"test", compare.pair.empty() ? "three-sided Welch t test against the margin"
                                        : "three-sided paired t test against the margin"},
          {"alpha", compare.alpha},
          {"correction", "Holm over the cells of one metric and one arm"},
          {"looks", compare.final_look ? "one look, which has all of alpha"
                                       : "the first look has 0.8 alpha, later looks share the rest"}};
}

Json json_margins(const experiments::Margins& margins) {
  return {{"time_ratio", margins.time},
          {"loss_ratio", margins.loss.ratio},
          {"loss_absolute", margins.loss.absolute},
          {"accuracy_points", margins.accuracy_points}};
}

Json json_comparison(const reports::Comparison& comparison, bool planned) {
  const experiments::Compare& compare = comparison.compare;
  Json verdicts = Json::array();
  for (const VerdictRecord& record : reports::verdict_records(comparison))
    verdicts.push_back(json_record(record));
  return {{"axis", compare.axis},
          {"baseline", compare.baseline},
          {"pair", compare.pair},
          {"differs", compare.differs},
          {"planned", planned},
          {"procedure", json_procedure(compare)},
          {"margins", json_margins(compare.margins)},
          {"verdicts", std::move(verdicts)}};
}

std::string as_json(const Compared& compared) {
  Json object{{"schema_version", schema_version}, {"experiment", compared.experiment}};
  object["comparisons"] = Json::array();
  for (const reports::Comparison& comparison : compared.comparisons)
    object["comparisons"].push_back(json_comparison(comparison, compared.planned));
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

double rounded(const std::optional<double>& value) {
  return value ? reports::rounded(*value) : std::nan("");
}

std::string as_csv(const Compared& compared) {
  reports::Table table;
  table.exact = true;
  table.columns = {"model",     "metric", "phase", "baseline", "arm",       "verdict",
                   "reason",    "effect", "unit",  "ci95_low", "ci95_high", "ci90_low",
                   "ci90_high", "p",      "n",     "verified", "marks"};
  const auto end = [](const std::optional<reports::Interval>& ends, double reports::Interval::*which) {
    return ends ? reports::rounded((*ends).*which) : std::nan("");
  };
  using reports::Interval;
  for (const auto& record : compared.records)
    table.rows.push_back({record.label, record.metric, record.phase, record.baseline, record.arm,
                          text_of(record.verdict), record.reason, rounded(record.effect), record.unit,
                          end(record.ci95, &Interval::low), end(record.ci95, &Interval::high),
                          end(record.ci90, &Interval::low), end(record.ci90, &Interval::high),
                          record.p.value_or(std::nan("")), record.n, record.verified ? "true" : "false",
                          joined(reports::marks_of(record.caveats), {}, " ")});
  return reports::csv_table(table);
}

const std::array<VerdictFormat, 5> known_verdict_formats{{{"table", as_table},
                                                          {"json", as_json},
                                                          {"markdown", as_markdown},
                                                          {"latex", as_latex},
                                                          {"csv", as_csv}}};

}  // namespace

std::span<const VerdictFormat> verdict_formats() {
  return known_verdict_formats;
}

}  // namespace trainyard::tools
