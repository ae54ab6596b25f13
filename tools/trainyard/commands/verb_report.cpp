// trainyard report: the page and its figures again, from the database alone.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>

#include "experiments/config/sheet.h"
#include "orchestrator/yard/yard.h"
#include "reports/report/report.h"
#include "reports/results/selection.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/cli/text_table.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

std::vector<std::string> names_of(const std::set<std::string>& chosen) {
  return {chosen.begin(), chosen.end()};
}

struct ReportOptions {
  reports::Selection selection;
  std::vector<std::string> formats = names_of(reports::usual_formats());
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> yard;
};

// The names that were given, each of an experiment of the yard; the one run last where there is none.
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
  const auto database = open_yard(options.yard);
  auto& selection = options.selection;
  selection.experiments = experiments_named(database, selection.experiments);
  const auto data = reports::gather(database, selection);
  const auto content = reports::compose(data);
  const auto folder = options.out
                          ? *options.out
                          : orchestrator::yard_from(options.yard).report(folder_name(selection.experiments));
  const auto written =
      reports::write_report(content, folder, {options.formats.begin(), options.formats.end()});
  std::cout << reports::verdict_table_text(content, output_width()) << '\n'
            << written.size() << " files, the first " << written.front().string() << '\n';
  const auto missed = reports::missed_expectations(content);
  for (const auto& line : missed) std::cerr << "missed: " << line << '\n';
  return missed.empty() ? done : run_failed;
}

}  // namespace

void add_report(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("report", "make the report of an experiment again from the database");
  auto options = std::make_shared<ReportOptions>();
  auto& selection = options->selection;
  command->add_option("EXPERIMENT", selection.experiments,
                      "its name (default: the one run last); several make one report");
  command->add_option("--where", selection.where, "only runs with this value, as model=mlp; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--since", selection.since,
                   "only runs with a record since then, UTC: 2026-11-20 or 2026-11-20T09:30")
      ->type_name("TIME");
  std::vector<std::string> names;
  std::string help = "several with commas:";
  for (const auto& format : reports::report_formats()) {
    names.push_back(format.name);
    help += "\n" + format.name + ": " + format.files;
  }
  command->add_option("--format", options->formats, help)->delimiter(',')->check(CLI::IsMember(names));
  refuse_empty(
      command
          ->add_option("--out", options->out, "folder to write to (default: reports/EXPERIMENT in the yard)")
          ->type_name("DIR"));
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return report(*options); }; });
}

}  // namespace trainyard::tools
