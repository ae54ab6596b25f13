// trainyard report: writes the page and its figures again, from the database or from a report.json.
#include "reports/report/report.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "experiments/config/config.h"
#include "orchestrator/yard/yard.h"
#include "reports/analysis/analysis.h"
#include "reports/document/report_json.h"
#include "reports/format/words.h"
#include "reports/results/report_data.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

struct ReportOptions {
  reports::Selection selection;
  std::vector<std::string> formats;           // empty: the usual ones
  std::optional<std::filesystem::path> from;  // a report.json
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
  const bool pictures =
      options.formats.empty() ||
      std::ranges::any_of(reports::report_formats(), [&](const reports::Format& format) {
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
  for (const auto& name : names) reports::add_new(found, experiment_named(database, name));
  return found;
}

std::string folder_name(const std::vector<std::string>& experiments) {
  return experiments::experiment_name(joined(experiments, {}, " and "));
}

struct Source {
  reports::Report report;
  std::filesystem::path folder;  // to write to
};

Source from_yard(ReportOptions options) {
  const auto database = open_yard(options.yard);
  reports::Selection& selection = options.selection;
  selection.experiments = experiments_named(database, selection.experiments);
  return {reports::make_report(reports::gather(database, selection)),
          options.out ? *options.out
                      : orchestrator::yard_from(options.yard).report(folder_name(selection.experiments))};
}

int report(const ReportOptions& options) {
  const reports::FigureSize size = figure_size_of(options);
  Source source =
      options.from ? Source{reports::read_report(*options.from), *options.out} : from_yard(options);
  const auto content = reports::compose(std::move(source.report));
  const std::set<std::string> chosen(options.formats.begin(), options.formats.end());
  const auto written = reports::write_report(
      content, source.folder, chosen.empty() ? reports::usual_formats() : chosen, size, options.ranks);
  std::cout << reports::terminal_table(content, output_width()) << '\n'
            << "wrote " << counted(written.size(), "file") << "; open " << written.front().string() << '\n';
  const auto missed = reports::missed_expectations(content.report->expectations);
  for (const auto& line : missed) std::cerr << "missed: " << line << '\n';
  return missed.empty() ? done : run_failed;
}

}  // namespace

void add_report(CLI::App& program, Invocation& invocation) {
  const auto [command, options] = add_verb(
      program, invocation, "report", "write the report of an experiment again from the database", report);
  auto& selection = options->selection;
  auto* names_option = command->add_option("EXPERIMENT", selection.experiments,
                                           "experiments of the report (default: the one run last)");
  auto* where = command->add_option("--where", selection.where,
                                    "only runs with this value: model=mlp (can be repeated)");
  where->type_name("NAME=VALUE")->allow_extra_args(false);
  auto* since = command->add_option(
      "--since", selection.since, "only runs with a record since then, UTC: 2026-11-20 or 2026-11-20T09:30");
  since->type_name("TIME");
  std::string help = "one or more, separated by commas:";
  for (const auto& format : reports::report_formats()) help += "\n" + format.name + ": " + format.files;
  command->add_option("--format", options->formats, help)
      ->delimiter(',')
      ->check(one_of(names_of(reports::report_formats(), &reports::Format::name)));
  command->add_flag("--ranks", options->ranks, "draw the curves of single ranks too, in the figure files");
  auto* out = command->add_option("--out", options->out,
                                  "folder to write to (default: reports/EXPERIMENT in the yard)");
  refuse_empty(out->type_name("DIR"));
  auto* from = command->add_option("--from", options->from, "a report.json instead of a yard; needs --out");
  refuse_empty(from->type_name("FILE"))->needs(out)->excludes(names_option)->excludes(where)->excludes(since);
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
}

}  // namespace trainyard::tools
