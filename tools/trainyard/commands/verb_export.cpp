// trainyard export: the results of an experiment as CSV or JSON Lines, for other programs.
#include <algorithm>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "db/queries/export.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/cli/text_table.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

struct ExportOptions {
  std::string what = "epochs";
  std::string experiment;
  std::string format = "csv";
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> yard;
};

void write_rows(const db::Database& database, const std::string& experiment, const ExportOptions& options,
                std::ostream& out) {
  const auto view = std::ranges::find(db::exported_views(), options.what, &db::ExportedView::name);
  const bool csv = options.format == "csv";
  std::vector<std::string> names;
  db::export_rows(
      database, *view, experiment,
      [&](const std::vector<std::string>& columns) {
        names = columns;
        if (csv) out << csv_line({columns.begin(), columns.end()});
      },
      [&](const db::ExportRow& row) { out << (csv ? csv_line(row) : json_line(names, row)); });
}

int export_results(const ExportOptions& options) {
  const auto database = open_yard(options.yard);
  const auto experiment = experiment_named(database, options.experiment);  // before a file is emptied
  if (!options.out) {
    write_rows(database, experiment, options, std::cout);
    return done;
  }
  std::ofstream file(*options.out, std::ios::binary | std::ios::trunc);
  write_rows(database, experiment, options, file);
  file.close();
  if (!file)
    throw UserError("cannot write " + options.out->string(), "is the folder there, is the disk full?");
  return done;
}

std::string about_views() {
  std::string text = "what to export:";
  for (const auto& view : db::exported_views())
    text += "\n" + view.name + ": " + view.about + " (view " + view.view + ")";
  return text;
}

std::vector<std::string> view_names() {
  std::vector<std::string> names;
  for (const auto& view : db::exported_views()) names.push_back(view.name);
  return names;
}

}  // namespace

void add_export(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "export", "the results of an experiment as CSV or JSON Lines; the columns are those of db/README.md");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("WHAT", options->what, about_views())
      ->check(CLI::IsMember(view_names()))
      ->capture_default_str();
  command->add_option("--experiment", options->experiment, "its name (default: the one run last)");
  command->add_option("--format", options->format, "csv, or jsonl: an object a line")
      ->check(CLI::IsMember({"csv", "jsonl"}))
      ->capture_default_str();
  refuse_empty(command->add_option("--out", options->out, "file to write (default: standard output)")
                   ->type_name("FILE"));
  add_yard_option(*command, options->yard);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return export_results(*options); }; });
}

}  // namespace trainyard::tools
