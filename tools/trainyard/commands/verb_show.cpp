// trainyard show RUN: one run whole: what was resolved, its attempts, its metrics, where its logs are, and
// how to run one of its ranks by hand.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/shell_quoted.h"
#include "db/queries/queries.h"
#include "experiments/protocol/record_writer.h"
#include "experiments/run/run.h"
#include "orchestrator/plan/status_text.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/cli/text_table.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

struct ShowOptions {
  std::string run;
  std::optional<fs::path> yard;
};

TextTable values_table(const db::RunSummary& run) {
  TextTable table{.columns = {"key", "value"}, .rows = {}, .right = {}};
  const auto titled = [](const std::string& title) { return title.empty() ? "" : " (" + title + ")"; };
  for (const auto& [name, value] : run.axes) {
    table.rows.push_back({name, models::to_text(value)});
    if (name == "model") table.rows.back().back() += titled(run.model_title);
    if (name == "dataset") table.rows.back().back() += titled(run.dataset_title);
  }
  return table;
}

// A column of what is not measured everywhere, where any epoch has it.
void add_measured(TextTable& table, const std::vector<db::EpochRow>& epochs, const char* title, double factor,
                  int digits, double db::EpochRow::*value) {
  const auto measured = [&](const db::EpochRow& epoch) { return std::isfinite(epoch.*value); };
  if (std::ranges::none_of(epochs, measured)) return;
  table.columns.emplace_back(title);
  table.right.push_back(true);
  for (std::size_t i = 0; i < epochs.size(); ++i)
    table.rows[i].push_back(number_text(factor * (epochs[i].*value), digits));
}

// An accuracy, a perplexity or a PSNR has a column if the task of the run has it.
TextTable epochs_table(const std::vector<db::EpochRow>& epochs) {
  using Row = db::EpochRow;
  TextTable table{.columns = {"epoch"}, .rows = {}, .right = {true}};
  for (const auto& epoch : epochs) table.rows.push_back({std::to_string(epoch.epoch)});
  add_measured(table, epochs, "train loss", 1, 5, &Row::train_loss);
  add_measured(table, epochs, "train %", 100, 2, &Row::train_accuracy);
  add_measured(table, epochs, "train perplexity", 1, 3, &Row::train_perplexity);
  add_measured(table, epochs, "train PSNR dB", 1, 2, &Row::train_psnr);
  add_measured(table, epochs, "validation loss", 1, 5, &Row::validation_loss);
  add_measured(table, epochs, "validation %", 100, 2, &Row::validation_accuracy);
  add_measured(table, epochs, "validation perplexity", 1, 3, &Row::validation_perplexity);
  add_measured(table, epochs, "validation PSNR dB", 1, 2, &Row::validation_psnr);
  add_measured(table, epochs, "train s", 1, 3, &Row::train_seconds);
  add_measured(table, epochs, "validation s", 1, 3, &Row::validation_seconds);
  constexpr double gibibyte = 1 << 30;
  add_measured(table, epochs, "train J", 1, 1, &db::EpochRow::energy_joules);
  add_measured(table, epochs, "peak GiB", 1 / gibibyte, 3, &db::EpochRow::peak_device_bytes);
  return table;
}

// "test loss 0.31, test accuracy 91.20 %": what is measured after training, as the task has it. BLEU is on
// the scale from 0 to 100.
std::string test_text(const db::RunSummary& run, const std::optional<db::FinalMetrics>& final) {
  std::string text;
  const auto add = [&](const char* name, double value, int digits, const char* unit) {
    if (std::isfinite(value))
      text += (text.empty() ? "\ntest " : ", test ") + std::string(name) + " " + number_text(value, digits) +
              unit;
  };
  if (final) add("loss", final->test_loss, 5, "");
  add("accuracy", 100 * run.test_accuracy, 2, " %");
  if (final) {
    add("perplexity", final->test_perplexity, 3, "");
    add("BLEU", final->test_bleu, 2, "");
    add("PSNR", final->test_psnr, 2, " dB");
  }
  return text.empty() ? "" : text + "\n";
}

std::string origin_text(const db::Attempt& attempt) {
  const auto resumed = attempt.launch.find("resumes_attempt");
  if (resumed == attempt.launch.end()) return "";
  return fmt::format(", goes on after epoch {} of attempt {}",
                     attempt.launch.value("resumes_after_epoch", std::int64_t{0}), resumed->get<int>());
}

void print_warnings(const std::vector<db::Warning>& warnings, int attempt) {
  for (const db::Warning& warning : warnings)
    if (warning.attempt == attempt)
      std::cout << "  " << warning.level << " of "
                << (warning.rank < 0 ? "trainyard" : "rank " + std::to_string(warning.rank)) << ": "
                << warning.text << '\n';
}

void print_attempt(const db::Attempt& attempt, const fs::path& folder, std::int64_t ranks,
                   const std::map<int, std::string>& jobs) {
  const auto job = jobs.find(attempt.attempt);
  const std::string where = job == jobs.end() ? "" : ", Slurm job " + job->second;
  std::cout << fmt::format(
      "attempt {}: {}{}, started {}{}{}{}\n", attempt.attempt, attempt.status,
      attempt.total_seconds > 0 ? " after " + orchestrator::duration_text(attempt.total_seconds) : "",
      attempt.started, where, origin_text(attempt), attempt.cause.empty() ? "" : ": " + attempt.cause);
  if (std::isfinite(attempt.other_share))
    std::cout << fmt::format("  other processes took {:.1f} % of its cores\n", 100 * attempt.other_share);
  if (!attempt.times_problem.empty()) std::cout << "  times do not count: " << attempt.times_problem << '\n';
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    std::cout << "  log of rank " << rank << ": "
              << (folder / experiments::rank_log_name(static_cast<int>(rank))).string() << '\n';
}

// The records of a rank run by hand go to a folder of their own: those of the attempt stay as they are.
void print_by_hand(const db::Attempt& attempt, const fs::path& folder, std::int64_t ranks) {
  const auto& strategy = attempt.launch.at("work").at("strategy");
  if (strategy.contains("command")) {  // a program of the user's, who knows how to start it
    std::cout << fmt::format("\ncommand of each rank, in {}: {}\n", strategy.value("folder", std::string()),
                             strategy.at("command").dump());
    return;
  }
  const auto programs = orchestrator::find_programs();
  const auto run_file = orchestrator::shell_quoted((folder / experiments::run_file_name).string());
  const auto runner = orchestrator::shell_quoted(programs.runner.string());
  if (ranks == 1) {
    std::cout << fmt::format("\nby hand: TRAINYARD_RUN={} {} --records by-hand\n", run_file, runner);
    return;
  }
  std::cout << fmt::format(
      "\nby hand: start {} in one terminal (it prints ADDRESS PORT), then each rank r of 0 … {} in its own:\n"
      "  RANK=r LOCAL_RANK=r WORLD_SIZE={} LOCAL_WORLD_SIZE={} MASTER_ADDR=127.0.0.1 MASTER_PORT=PORT \\\n"
      "  TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=by-hand TRAINYARD_RUN={} \\\n  {} --records "
      "by-hand\n",
      orchestrator::shell_quoted(programs.store.string()), ranks - 1, ranks, ranks, run_file, runner);
}

// In the yard, which may have been moved since the folder was recorded; of a database alone as recorded.
fs::path folder_of(const db::Attempt& attempt, const orchestrator::Yard& yard, const std::string& key) {
  const fs::path here = yard.attempt(key, attempt.attempt);
  return fs::exists(here) ? here : fs::path(attempt.directory);
}

void print_run(const db::Database& database, const orchestrator::Yard& yard, const db::RunSummary& run) {
  const auto ranks = run.replicas * run.stages;
  std::cout << fmt::format("{}  {} {} seed {}: {}, experiment {}\n\n", run.run_key, run.model, run.strategy,
                           run.seed, run.status, run.experiment)
            << aligned(values_table(run)) << '\n';
  const auto attempts = db::attempts_of_run(database, run.run_key);
  const auto jobs = db::jobs_of_run(database, run.run_key);
  const auto warnings = db::warnings_of_run(database, run.run_key);
  for (const auto& attempt : attempts) {
    print_attempt(attempt, folder_of(attempt, yard, run.run_key), ranks, jobs);
    print_warnings(warnings, attempt.attempt);
  }
  const auto epochs = db::epochs_of_run(database, run.run_key);
  if (!epochs.empty()) std::cout << '\n' << aligned(epochs_table(epochs));
  std::cout << test_text(run, db::final_metrics_of_run(database, run.run_key));
  if (!attempts.empty()) print_by_hand(attempts.back(), folder_of(attempts.back(), yard, run.run_key), ranks);
}

int show(const ShowOptions& options) {
  const auto database = open_yard(options.yard);
  const auto key = run_named(database, options.run);
  const auto runs = db::run_summaries(database);
  const auto found =
      std::find_if(runs.begin(), runs.end(), [&](const auto& run) { return run.run_key == key; });
  print_run(database, orchestrator::yard_from(options.yard), *found);
  return done;
}

}  // namespace

void add_show(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "show", "one run: its values, attempts, warnings, metrics and logs, and how to run it by hand");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("RUN", options->run, "key, a unique prefix of it, or `last`")->required();
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return show(*options); }; });
}

}  // namespace trainyard::tools
