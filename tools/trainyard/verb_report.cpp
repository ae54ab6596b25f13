// trainyard report: the page and its figures again, from the database alone.
#include <iostream>

#include <CLI/CLI.hpp>

#include "orchestrator/yard.h"
#include "reports/report.h"
#include "tools/trainyard/command.h"
#include "tools/trainyard/open_yard.h"

namespace trainyard::tools {
namespace {

struct ReportOptions {
  std::string experiment;
  std::vector<std::string> formats{"html", "svg", "png"};
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> yard;
};

int report(const ReportOptions& options) {
  const auto database = open_yard(options.yard);
  const auto experiment = experiment_named(database, options.experiment);
  const auto folder = options.out.value_or(orchestrator::yard_from(options.yard).report(experiment));
  const auto written =
      reports::write_report(database, experiment, folder, {options.formats.begin(), options.formats.end()});
  std::cout << reports::verdict_table_text(database, experiment) << '\n'
            << written.size() << " files, the first " << written.front().string() << '\n';
  const auto missed = reports::missed_expectations(database, experiment);
  for (const auto& line : missed) std::cerr << "missed: " << line << '\n';
  return missed.empty() ? done : run_failed;
}

}  // namespace

void add_report(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("report", "make the report of an experiment again from the database");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  command->add_option("--format", options->formats, "html, svg, png; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"html", "svg", "png"}));
  command->add_option("--out", options->out, "folder to write to (default: reports/EXPERIMENT in the yard)")
      ->type_name("DIR");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return report(*options); }; });
}

}  // namespace trainyard::tools
