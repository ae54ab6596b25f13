// trainyard export: the results of an experiment as CSV or JSON Lines, for other programs.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "db/queries/queries.h"
#include "db/queries/select.h"
#include "reports/format/aligned_text.h"
#include "reports/format/table.h"
#include "tools/trainyard/cli/command.h"
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

reports::TableRow row_of(const db::ExportRow& cells) {
  reports::TableRow row;
  row.reserve(cells.size());
  for (const nlohmann::json& cell : cells) {
    if (cell.is_string())
      row.emplace_back(cell.get<std::string>());
    else if (cell.is_number_integer())
      row.emplace_back(cell.get<std::int64_t>());
    else
      row.emplace_back(cell.is_null() ? std::nan("") : cell.get<double>());
  }
  return row;
}

void write_rows(const db::Database& database, const std::string& experiment, const ExportOptions& options,
                std::ostream& out) {
  const auto view = std::ranges::find(db::exported_views(), options.what, &db::ExportedView::name);
  const bool csv = options.format == "csv";
  reports::Table table;
  table.exact = true;
  db::export_rows(
      database, *view, experiment,
      [&](const std::vector<std::string>& columns) {
        table.columns.assign(columns.begin(), columns.end());
        if (csv) out << csv_head(table);
      },
      [&](const db::ExportRow& cells) {
        const reports::TableRow row = row_of(cells);
        out << (csv ? csv_row(table, row) : json_row(table, row));
      });
}

int export_results(const ExportOptions& options) {
  const auto database = open_yard(options.yard);
  // before opening the file: an error must not empty it
  const auto experiment = experiment_named(database, options.experiment);
  if (!options.out) {
    write_rows(database, experiment, options, std::cout);
    return done;
  }
  std::ofstream file(*options.out, std::ios::binary | std::ios::trunc);
  write_rows(database, experiment, options, file);
  file.close();
  if (!file)
    throw UserError("cannot write " + options.out->string(), "check the folder and the free disk space");
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
  auto* command = program.add_subcommand("export",
                                         "export results as CSV or JSON Lines\n\n"
                                         "db/README.md describes the columns.");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("WHAT", options->what, about_views())
      ->check(CLI::IsMember(view_names()))
      ->capture_default_str();
  command->add_option("--experiment", options->experiment, "its name (default: the one run last)");
  command->add_option("--format", options->format, "csv, or jsonl: one object per line")
      ->check(CLI::IsMember({"csv", "jsonl"}))
      ->capture_default_str();
  refuse_empty(command->add_option("--out", options->out, "file to write (default: standard output)")
                   ->type_name("FILE"));
  add_yard_option(*command, options->yard);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return export_results(*options); }; });
}

// trainyard sql: runs a read-only SQL query, or prints the schema.

namespace {

struct SqlOptions {
  std::string statement;
  bool schema = false;
  std::string format = "table";
  std::optional<std::filesystem::path> yard;
};

// "\nrun_summary (view)\n  run_key, experiment, …\n" per view and table, at most 80 columns wide.
std::string schema_text(const db::ResultTable& schema) {
  constexpr std::size_t width = 80;
  std::string text =
      "db/README.md explains each view and column. Views keep their columns, tables\n"
      "may change.\n";
  std::string name, line;
  for (const auto& row : schema.rows) {
    const auto cell = [&](std::size_t i) { return row[i].get<std::string>(); };
    if (cell(1) != name) {
      if (!name.empty()) text += line + '\n';
      name = cell(1);
      text += "\n" + name + " (" + cell(0) + ")\n";
      line = "  " + cell(2);
      continue;
    }
    const bool fits = trainyard::columns(line) + 2 + trainyard::columns(cell(2)) < width;
    if (!fits) text += line + ",\n";
    line = (fits ? line + ", " : "  ") + cell(2);
  }
  return text + line + '\n';
}

db::ResultTable answer_of(const db::Database& database, const SqlOptions& options) {
  return options.schema ? db::schema_columns(database) : db::select(database, options.statement);
}

// Columns without text values are right-aligned.
reports::Table table_of(const db::ResultTable& result) {
  reports::Table table;
  table.exact = true;
  table.columns.assign(result.columns.begin(), result.columns.end());
  for (const db::ExportRow& row : result.rows) table.rows.push_back(row_of(row));
  for (std::size_t i = 0; i < result.columns.size(); ++i)
    table.columns[i].right =
        std::ranges::none_of(result.rows, [&](const db::ExportRow& row) { return row[i].is_string(); });
  return table;
}

int ask(const SqlOptions& options) {
  if (options.statement.empty() && !options.schema)
    throw UserError("no SQL statement is given", "write it in quotes, or list the views with --schema");
  const auto database = open_yard(options.yard);
  const auto result = answer_of(database, options);
  if (options.format == "csv")
    std::cout << csv_table(table_of(result));
  else if (options.format == "json")
    std::cout << json_table(table_of(result));
  else if (options.format == "markdown")
    std::cout << markdown_table(table_of(result));
  else
    std::cout << (options.schema ? schema_text(result) : aligned_table(table_of(result)));
  return done;
}

}  // namespace

void add_sql(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("sql", "run one SQL query, without changing the database");
  auto options = std::make_shared<SqlOptions>();
  auto* statement = command->add_option("STATEMENT", options->statement, "one SQL statement");
  command->add_flag("--schema", options->schema, "print the views with their columns, then the tables")
      ->excludes(statement);
  command->add_option("--format", options->format, "how to print it")
      ->check(CLI::IsMember({"table", "csv", "json", "markdown"}))
      ->capture_default_str();
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return ask(*options); }; });
}

}  // namespace trainyard::tools
