// trainyard export: the results of an experiment as CSV or JSON Lines, for other programs; or a network of
// PyTorch as a file, see export_model.h.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/disk_failure.h"
#include "base/error.h"
#include "base/named_row.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "db/queries/queries.h"
#include "models/tasks.h"
#include "reports/format/aligned_text.h"
#include "reports/format/table.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/export_model.h"

namespace trainyard::tools {

namespace {

struct ExportOptions {
  std::string what = "epochs";
  std::string experiment;
  std::string format = "csv";
  std::optional<std::filesystem::path> out;
  std::optional<std::filesystem::path> yard;
  ModelExportOptions model;
  std::vector<CLI::Option*> of_results, of_model;  // options of one form of the command
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

// Prints rows, at most `most_rows`: as csv and jsonl row by row, in the other formats at the end.
class Rows {
 public:
  Rows(std::ostream& out, std::string format, std::size_t most_rows = SIZE_MAX)
      : out_(out), format_(std::move(format)), most_rows_(most_rows) {}

  void columns(const std::vector<std::string>& names) {
    table_.exact = true;
    for (const std::string& name : names) table_.columns.push_back(reports::right_column(name));
    if (format_ == "csv") out_ << csv_head(table_);
  }

  // False after the last row that may be printed, and if nobody reads the output.
  bool row(const db::ExportRow& cells) {
    if (count_ == most_rows_) {
      too_many_ = true;
      return false;
    }
    ++count_;
    const reports::TableRow row = row_of(cells);
    if (format_ == "csv" || format_ == "jsonl")
      out_ << (format_ == "csv" ? csv_row(table_, row) : json_row(table_, row));
    else
      table_.rows.push_back(row);
    for (std::size_t i = 0; i < cells.size(); ++i)  // columns without texts are right-aligned
      if (cells[i].is_string()) table_.columns[i].right = false;
    return static_cast<bool>(out_);
  }

  int end() {
    if (format_ == "json") out_ << json_table(table_);
    if (format_ == "markdown") out_ << markdown_table(table_);
    if (format_ == "table") out_ << aligned_table(table_);
    if (!too_many_) return done;
    out_ << std::flush;
    std::cerr << "trainyard: the answer has more than " << most_rows_
              << " rows, and only these are printed; print more with --max-rows, or ask for fewer\n";
    return run_failed;
  }

 private:
  std::ostream& out_;
  std::string format_;
  std::size_t most_rows_;
  reports::Table table_;  // with rows, if the format needs all of them at once
  std::size_t count_ = 0;
  bool too_many_ = false;
};

// Columns of metrics of the user, which the views do not have: of runs, or of epochs.
class OwnColumns {
 public:
  OwnColumns(const db::Database& database, const std::string& experiment, const std::string& view) {
    if (view != "final" && view != "epochs") return;
    reports::ReportData data;
    data.experiment = experiment;
    data.plan = db::latest_plan(database, experiment);
    reports::add_own_metrics(database, data);
    if (data.own_metrics.empty()) return;  // most yards have none, and epochs can be many
    if (view == "final") data.finals = db::final_metrics(database, experiment);
    if (view == "epochs") data.averages = db::epoch_averages(database, experiment);
    reports::add_own_metrics(database, data);
    for (const db::FinalMetrics& final : data.finals) values_[{final.run_key, 0}] = final;
    for (const db::EpochRow& epoch : data.averages) values_[{epoch.run_key, epoch.epoch}] = epoch;
    for (const reports::Metric& metric : reports::metrics())
      if (!metric.own_name.empty() && std::ranges::any_of(values_, [&](const auto& values) {
            return std::isfinite(values.second[reports::final_column(metric)]);
          }))
        metrics_.push_back(&metric);
  }

  std::vector<std::string> with_names(std::vector<std::string> names) {
    const auto place = [&](const char* name) {
      return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    };
    key_ = place("run_key"), epoch_ = place("epoch");
    for (const reports::Metric* metric : metrics_) names.push_back(metric->column);
    return names;
  }

  db::ExportRow with_values(db::ExportRow cells) const {
    if (metrics_.empty()) return cells;
    const std::int64_t epoch = epoch_ < cells.size() ? cells[epoch_].get<std::int64_t>() : 0;
    const auto found = values_.find({cells.at(key_).get<std::string>(), epoch});
    for (const reports::Metric* metric : metrics_) {
      const double value =
          found == values_.end() ? std::nan("") : found->second[reports::final_column(*metric)];
      cells.push_back(std::isfinite(value) ? nlohmann::json(value) : nlohmann::json());
    }
    return cells;
  }

 private:
  std::vector<const reports::Metric*> metrics_;
  std::map<std::pair<std::string, std::int64_t>, db::MetricValues> values_;  // by run and epoch
  std::size_t key_ = 0, epoch_ = 0;                                          // columns of the view
};

void write_rows(const db::Database& database, const std::string& experiment, const ExportOptions& options,
                std::ostream& out) {
  const auto view = std::ranges::find(db::exported_views(), options.what, &db::ExportedView::name);
  Rows rows(out, options.format);
  OwnColumns own(database, experiment, view->name);
  db::export_rows(
      database, *view, experiment,
      [&](const std::vector<std::string>& names) { rows.columns(own.with_names(names)); },
      [&](const db::ExportRow& cells) { return rows.row(own.with_values(cells)); });
}

int export_results(const ExportOptions& options) {
  const auto database = open_yard(options.yard);
  // before opening the file: an error must not empty it
  const auto experiment = experiment_named(database, options.experiment);
  if (!options.out) {
    write_rows(database, experiment, options, std::cout);
    return done;
  }
  PlainFileWriter file(*options.out);
  if (!file)
    throw UserError("cannot write " + options.out->string() + ": " + file.problem(), "name another file");
  write_rows(database, experiment, options, file);
  file.close();
  if (!file) throw_incomplete("cannot write " + options.out->string(), "check the free disk space");
  return done;
}

std::string about_what() {
  std::string text = "the view to export, or the function that makes the network:";
  for (const auto& view : db::exported_views())
    text += "\n" + view.name + ": " + view.about + " (view " + view.view + ")";
  return text + "\nFILE.py:FUNCTION: the network of this Python function, as a .pt2 file";
}

// The name of a view, or of a Python file.
CLI::Validator view_or_function() {
  const CLI::Validator view = one_of(names_of(db::exported_views(), &db::ExportedView::name));
  const auto problem = [view](std::string& text) {
    if (names_python_file(text)) return std::string();
    const std::string unknown = view(text);
    return unknown.empty() ? unknown : unknown + ", and it is not FILE.py:FUNCTION";
  };
  return {problem, ""};
}

// UserError for an option of the other form.
void refuse_other_form(const ExportOptions& options, bool of_model) {
  for (const CLI::Option* option : of_model ? options.of_results : options.of_model) {
    if (option->count() == 0) continue;
    if (of_model)
      throw UserError(option->get_name() + " is for results, but a Python function is named",
                      "leave the option out, or name a view, as in `trainyard export epochs`");
    throw UserError(option->get_name() + " is for networks, but no Python function is named",
                    "leave the option out, or write `trainyard export FILE.py:FUNCTION`");
  }
}

void add_result_options(CLI::App& command, ExportOptions& options) {
  options.of_results = {
      command.add_option("--experiment", options.experiment,
                         "of results: its name (default: the one run last)"),
      command.add_option("--format", options.format, "of results: csv, or jsonl: one object per line")
          ->check(one_of({"csv", "jsonl"}))
          ->capture_default_str()};
  add_yard_option(command, options.yard);
  options.of_results.push_back(command.get_option("--yard"));
}

void add_model_options(CLI::App& command, ExportOptions& options) {
  ModelExportOptions& model = options.model;
  options.of_model = {
      command
          .add_option("--batch", model.batch,
                      "of a network: samples of the example (default: as many as the function gives)")
          ->type_name("N")
          ->check(CLI::Range(2, 65536)),
      command
          .add_option(
              "--task", model.task,
              "of a network: its task, see `trainyard list tasks` (default: what the function says, or the "
              "sizes)")
          ->check(one_of(models::task_names()))
          ->option_text("TASK"),
      refuse_empty(command
                       .add_option("--python", model.python,
                                   "of a network: a Python that has torch 2.11 to 2.15 (default: python3, or "
                                   "that of the build)")
                       ->type_name("PROGRAM")),
      command
          .add_option(
              "--seeds", model.seeds,
              "of a network: write first weights for the seeds 0 to N - 1 too, for initial = \"program\"")
          ->type_name("N")
          ->check(CLI::Range(1, 10'000)),
      command.add_flag("--double", model.in_double, "of a network: write it in float64"),
      command.add_flag("--verbose", model.verbose, "of a network: print Python's tracebacks and warnings")};
}

int export_either(ExportOptions options) {
  const bool of_model = names_python_file(options.what);
  refuse_other_form(options, of_model);
  if (!of_model) return export_results(options);
  options.model.function = options.what;
  options.model.out = options.out;
  return export_model(options.model);
}

}  // namespace

void add_export(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "export",
               "export results as CSV or JSON Lines, or a network of PyTorch\n\n"
               "db/README.md describes the columns of results. docs/exported-models.md\n"
               "describes the function that makes a network.",
               export_either);
  command->add_option("WHAT", options->what, about_what())
      ->type_name("VIEW|FILE.py:FUNCTION")
      ->check(view_or_function())
      ->capture_default_str();
  refuse_empty(
      command->add_option("-o,--out", options->out, "file to write (default of results: standard output)")
          ->type_name("FILE"));
  add_result_options(*command, *options);
  add_model_options(*command, *options);
}

// trainyard sql: runs a read-only SQL query, or prints the schema.

namespace {

struct SqlOptions {
  std::string statement;
  bool schema = false;
  std::string format = "table";
  std::size_t most_rows = 100'000;
  std::optional<std::filesystem::path> yard;
};

// "\nrun_summary (view)\n  run_key, experiment, …\n" per view and table, at most 80 columns wide.
std::string schema_text(const db::ResultTable& schema) {
  constexpr std::size_t width = 80;
  std::vector<std::pair<std::string, std::vector<std::string>>> columns;  // by view or table
  for (const auto& row : schema.rows) {
    const auto cell = [&](std::size_t i) { return row[i].get<std::string>(); };
    reports::value_of_key(columns, cell(1) + " (" + cell(0) + ")").push_back(cell(2));
  }
  std::string text =
      "db/README.md explains each view and column. Views keep their columns, tables\n"
      "may change.\n";
  for (const auto& [name, names] : columns) {
    const std::string lines =
        reports::paragraph(joined(names) + ",", width);  // each line has room for a comma
    text += "\n" + name + "\n  " + lines.substr(0, lines.rfind(',')) + "\n";
  }
  return text;
}

int ask(const SqlOptions& options) {
  if (options.statement.empty() && !options.schema)
    throw UserError("no SQL statement is given", "write it in quotes, or list the views with --schema");
  const auto database = open_yard(options.yard);
  const std::string statement = options.schema ? db::schema_query : options.statement;
  if (options.schema && options.format == "table") {
    std::cout << schema_text(db::select(database, statement));
    return done;
  }
  Rows rows(std::cout, options.format, options.most_rows);
  db::select_rows(
      database, statement, [&](const std::vector<std::string>& names) { rows.columns(names); },
      [&](const db::ExportRow& cells) { return rows.row(cells); });
  return rows.end();
}

}  // namespace

void add_sql(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "sql", "run one SQL query, without changing the database", ask);
  auto* statement = command->add_option("STATEMENT", options->statement, "one SQL statement");
  command->add_flag("--schema", options->schema, "print the views with their columns, then the tables")
      ->excludes(statement);
  command->add_option("--format", options->format, "how to print it")
      ->check(one_of({"table", "csv", "json", "markdown"}))
      ->capture_default_str();
  command->add_option("--max-rows", options->most_rows, "print at most this many rows; more is an error")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
