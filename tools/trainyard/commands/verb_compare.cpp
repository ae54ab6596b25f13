// trainyard compare: the verdicts of an experiment, or of two groups of its runs, on the terminal and for CI.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/joined.h"
#include "reports/format/aligned_text.h"
#include "reports/verdicts/group_comparison.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/cli/text_table.h"
#include "tools/trainyard/cli/verdict_output.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/compare_gate.h"

namespace trainyard::tools {
namespace {

struct CompareOptions {
  std::vector<std::string> groups;  // A and B, or none
  std::string experiment;
  std::vector<std::string> differs;
  std::string format = "table";
  std::vector<std::string> fail_on;
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

// What fails goes to standard error: standard output is the verdicts alone, whatever their format.
int gate(const std::vector<reports::Comparison>& compared, const std::vector<FailOn>& fail_on,
         const CompareOptions& options) {
  const std::vector<std::string> failures = gate_failures(compared, fail_on);
  for (const std::string& line : failures)
    std::cerr << reports::paragraph(
        "fails --fail-on " + models::joined(options.fail_on, {}, ",") + ": " + line, output_width(2));
  return failures.empty() ? done : gate_failed;
}

int compare(const CompareOptions& options) {
  if (options.groups.size() == 1)
    throw UserError("compare needs two groups of runs, or none for what the experiment's file compares");
  const std::vector<FailOn> fail_on = parse_fail_on(options.fail_on);
  const auto database = open_yard(options.yard);
  auto data = reports::gather_results(database, experiment_named(database, options.experiment));
  reports::check_differs(data, options.differs);
  const std::vector<experiments::Compare> planned = data.plan.compare;
  Compared compared{data.experiment, comparisons(data, options), {}, true, output_width()};
  for (const auto& comparison : compared.comparisons) {
    const auto more = reports::verdict_records(comparison);
    compared.records.insert(compared.records.end(), more.begin(), more.end());
    compared.planned = compared.planned && is_planned(comparison.compare, planned);
  }
  if (compared.records.empty())  // no pass for `--fail-on`
    throw UserError(
        "nothing to compare: experiment \"" + data.experiment + "\" has no arm beside its baseline",
        "name two groups, as in `trainyard compare batch=64 batch=128`");
  const auto format = std::ranges::find(verdict_formats(), options.format, &VerdictFormat::name);
  std::cout << format->text(compared);
  return gate(compared.comparisons, fail_on, options);
}

std::string about_fail_on() {
  std::string text = "exit with 3 if any verdict is one of these (docs/comparing.md):";
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
      "verdicts on the terminal: of an experiment as its file compares, or of two groups of its runs\n"
      "  trainyard compare                                 what the file of the latest experiment compares\n"
      "  trainyard compare single ddp                      two values of the axis that it compares\n"
      "  trainyard compare strategy=ddp,batch=64 strategy=ddp,batch=128\n"
      "  trainyard compare 3f9a 77b2                       two runs by the beginnings of their keys\n"
      "  trainyard compare --format json --fail-on deteriorates     for CI: exit code 3\n"
      "An effect is that of the arm against the baseline: in percent for times, losses and perplexities, in\n"
      "percentage points for accuracies, in dB for PSNR, in units of loss where the loss is small");
  auto options = std::make_shared<CompareOptions>();
  command
      ->add_option("A B", options->groups,
                   "baseline and arm: value of the axis, NAME=VALUE,…, or a run's key")
      ->expected(0, 2);
  command->add_option("--experiment", options->experiment, "its name (default: the one run last)");
  command
      ->add_option("--differs", options->differs,
                   "a difference that is meant, as in the file: --differs batch")
      ->delimiter(',');
  command->add_option("--format", options->format, "how to print it")
      ->check(CLI::IsMember(format_names()))
      ->capture_default_str();
  command->add_option("--fail-on", options->fail_on, about_fail_on())->delimiter(',')->type_name("WORD,…");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return compare(*options); }; });
}

}  // namespace trainyard::tools
