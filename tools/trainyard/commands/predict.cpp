// trainyard predict: prints the modelled and the measured step time of each arm of a finished sweep.
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"
#include "reports/results/prediction.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/experiment_options.h"
#include "tools/trainyard/cli/named_experiment.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

using reports::Prediction;
using reports::StepCost;
using runner::StepSeconds;

struct PredictOptions {
  ExperimentOptions experiment;
  std::string format = "table";
};

struct PartColumn {
  const char* name;
  double StepSeconds::*seconds;
};
constexpr std::array part_columns{PartColumn{"input", &StepSeconds::input},
                                  PartColumn{"compute", &StepSeconds::compute},
                                  PartColumn{"bubble", &StepSeconds::bubble},
                                  PartColumn{"transfer", &StepSeconds::transfer},
                                  PartColumn{"gradients", &StepSeconds::communication},
                                  PartColumn{"optimizer", &StepSeconds::optimizer},
                                  PartColumn{"core wait", &StepSeconds::core_wait},
                                  PartColumn{"other", &StepSeconds::other}};

std::string arm_of(const Prediction& prediction) {
  return prediction.arm + (prediction.cell.empty() ? "" : ", " + prediction.cell);
}

std::string milliseconds(double seconds) {
  return reports::decimals(1e3 * seconds, 2);
}

reports::TableRow row_of(const std::string& model, const std::string& arm, const char* what,
                         const StepCost& cost, const std::string& error) {
  reports::TableRow row{model, arm, what, milliseconds(cost.seconds), error};
  for (const PartColumn& column : part_columns)
    row.emplace_back(cost.parts.*column.seconds > 0 ? milliseconds(cost.parts.*column.seconds) : "-");
  return row;
}

reports::Table table_of(const std::vector<Prediction>& predictions) {
  using reports::right_column;
  reports::Table table;
  table.columns = {"model", "arm", "", right_column("step ms"), right_column("error %")};
  for (const PartColumn& column : part_columns) table.columns.push_back(right_column(column.name));
  for (const Prediction& one : predictions) {
    const bool known = one.missing.empty();
    const std::string error =
        (known && one.error_percent() >= 0 ? "+" : "") + reports::decimals(one.error_percent(), 1);
    if (known) table.rows.push_back(row_of(one.model, arm_of(one), "predicted", one.predicted, error));
    if (one.measured.seconds > 0)
      table.rows.push_back(
          row_of(known ? "" : one.model, known ? "" : arm_of(one), "measured", one.measured, ""));
  }
  return table;
}

// "ARMS: based on …" and "ARMS: not predicted: …", one line per distinct text.
std::vector<std::string> notes_of(const std::vector<Prediction>& predictions) {
  std::map<std::string, std::string> arms;
  for (const Prediction& one : predictions) {
    const std::string note = one.missing.empty() ? "based on " + one.basis : "not predicted: " + one.missing;
    std::string& of_note = arms[note];
    if (!of_note.empty()) of_note += "; ";
    of_note.append(one.model).append(" ").append(arm_of(one));
  }
  std::vector<std::string> notes;
  for (const auto& [note, of_note] : arms) notes.push_back(of_note + ": " + note);
  return notes;
}

// For each prediction that is off by more than 10 %, the phase with the largest part of the error.
std::string misses_of(const std::vector<Prediction>& predictions) {
  constexpr double much = 10;
  std::string text;
  for (const Prediction& one : predictions) {
    if (!one.missing.empty() || std::abs(one.error_percent()) <= much) continue;
    const bool longer = one.measured.seconds > one.predicted.seconds;
    const auto excess = [&](const PartColumn& column) {
      const double more = one.measured.parts.*column.seconds - one.predicted.parts.*column.seconds;
      return longer ? more : -more;
    };
    const PartColumn& most = *std::ranges::max_element(part_columns, {}, excess);
    text += one.model + " " + arm_of(one) + " takes " + (longer ? "longer" : "less") +
            " than predicted, mostly in " + most.name + ": " +
            milliseconds(one.measured.parts.*most.seconds) + " ms, not " +
            milliseconds(one.predicted.parts.*most.seconds) + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

std::string as_table(const std::vector<Prediction>& predictions) {
  reports::Table table = table_of(predictions);
  table.notes = notes_of(predictions);
  return reports::aligned_table(table) + misses_of(predictions);
}

std::string as_markdown(const std::vector<Prediction>& predictions) {
  return reports::markdown_table(table_of(predictions));
}

void add_cells(reports::TableRow& row, const StepCost& cost, bool known) {
  const auto add = [&](double seconds) { row.emplace_back(known ? seconds : std::nan("")); };
  add(cost.seconds);
  for (const PartColumn& column : part_columns) add(cost.parts.*column.seconds);
}

reports::Table typed_table(const std::vector<Prediction>& predictions) {
  reports::Table table;
  table.exact = true;
  table.columns = {"model", "cell", "arm", "runs", "error_percent"};
  for (const char* what : {"predicted", "measured"}) {
    table.columns.emplace_back(std::string(what) + "_step_seconds");
    for (const PartColumn& column : part_columns) {
      std::string name = std::string(what) + "_" + column.name + "_seconds";
      std::ranges::replace(name, ' ', '_');
      table.columns.emplace_back(std::move(name));
    }
  }
  table.columns.insert(table.columns.end(), {"basis", "not_predicted"});
  for (const Prediction& one : predictions) {
    const bool known = one.missing.empty();
    reports::TableRow row{one.model, one.cell, one.arm, one.runs, known ? one.error_percent() : std::nan("")};
    add_cells(row, one.predicted, known);
    add_cells(row, one.measured, one.measured.seconds > 0);
    row.insert(row.end(), {one.basis, one.missing});
    table.rows.push_back(std::move(row));
  }
  return table;
}

struct Format {
  const char* name;
  std::string (*text)(const std::vector<Prediction>&);
};
constexpr std::array formats{
    Format{"table", as_table}, Format{"markdown", as_markdown},
    Format{"json", [](const std::vector<Prediction>& all) { return reports::json_table(typed_table(all)); }},
    Format{"csv", [](const std::vector<Prediction>& all) { return reports::csv_table(typed_table(all)); }}};

std::vector<std::string> prediction_formats() {
  std::vector<std::string> names;
  names.reserve(formats.size());
  for (const Format& format : formats) names.emplace_back(format.name);
  return names;
}

int predict(PredictOptions options) {
  const std::string named = options.experiment.file.string();
  complete_from_journal(options.experiment);
  auto experiment = checked_experiment(options.experiment);
  if (!experiment) return wrong_usage;
  experiments::resolve_data(*experiment, experiments::data_search(options.experiment.data));
  const auto database = open_yard(options.experiment.yard);
  const auto runs = reports::measured_runs(database, experiment->name, experiment->runs);
  if (runs.empty())
    throw UserError("no run of " + named + " has finished in this yard",
                    "train it first: trainyard run " + named);
  const auto predictions = reports::predictions(runs);
  if (predictions.empty())
    throw UserError("only `single` runs have finished, and predictions are for other strategies",
                    "train one of them, for example ddp");
  std::cout << std::ranges::find(formats, options.format, &Format::name)->text(predictions);
  if (runs.size() < experiment->runs.size())
    std::cerr << runs.size() << " of " << experiment->runs.size() << " runs have finished\n";
  return done;
}

constexpr const char* essay =
    "The prediction for a pipeline simulates its schedule from what each rank does by itself. For replicas "
    "it takes the step of `independent` ranks, or else of `single`, at their part of the batch. It adds the "
    "wait for gradients.\n\n"
    "The phases are means over ranks, in milliseconds:\n"
    "  input       the next batch\n"
    "  compute     forward and backward\n"
    "  bubble      waiting for a neighbouring stage\n"
    "  transfer    messages between stages\n"
    "  gradients   waiting for the sum of the gradients\n"
    "  optimizer   the update of the parameters\n"
    "  core wait   another rank has the core\n"
    "  other       the rest\n\n"
    "The measured step is that of the median epoch, as in the verdicts.";

}  // namespace

void add_predict(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("predict", "print the modelled and the measured time of a step, by phase");
  command->footer(essay);
  auto options = std::make_shared<PredictOptions>();
  add_experiment_options(*command, options->experiment);
  accept_name(*command);
  add_place_options(*command, options->experiment);
  command->add_option("--format", options->format, "how to print it")
      ->check(one_of(prediction_formats()))
      ->capture_default_str();
  command->callback([options, &invocation] { invocation.action = [options] { return predict(*options); }; });
}

}  // namespace trainyard::tools
