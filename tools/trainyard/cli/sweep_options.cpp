#include "tools/trainyard/cli/sweep_options.h"

#include <CLI/CLI.hpp>

#include "experiments/config/config.h"
#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {

constexpr int usual_max_seeds = 20;

void add_experiment_options(CLI::App& command, ExperimentOptions& options) {
  refuse_empty(command.add_option("FILE", options.file, "experiment file (TOML)")->required());
  const auto add = [&](const char* name, std::vector<std::string>& texts, const char* about) {
    command.add_option(name, texts, about)->type_name("KEY=VALUE")->allow_extra_args(false);
  };
  add("--set", options.selection.set, "set a key for all runs: --set epochs=1");
  CLI::Option* max_seeds = command
                               .add_option("--max-seeds", options.selection.max_seeds,
                                           "train 4 to N seeds of each cell, until it is decided")
                               ->type_name("N")
                               ->check(CLI::Range(3, experiments::most_seeds));
  command.add_flag_callback(
      "--until-decided",
      [&options, max_seeds] {
        if (max_seeds->count() == 0) options.selection.max_seeds = usual_max_seeds;
      },
      "the same as --max-seeds 20");
  add("--where", options.selection.where, "only runs with this value: --where model=mlp (can be repeated)");
  add("--exclude-where", options.selection.exclude_where,
      "leave out runs with all of these values: --exclude-where model=mlp,seed=3 (can be repeated)");
  refuse_empty(command
                   .add_option("--as", options.selection.as,
                               "name of the experiment and its report (default: that of the file; NAME-try "
                               "if --set changes runs)")
                   ->type_name("NAME"));
}

void add_order_option(CLI::App& command, orchestrator::PlanOptions& options) {
  command
      .add_option_function<std::string>(
          "--order",
          [&options](const std::string& text) {
            options.order = text == "declared" ? orchestrator::Order::declared : orchestrator::Order::paired;
          },
          "order of the runs:\n"
          "paired: runs with the same seed directly after one another, in an order drawn from data_seed\n"
          "declared: as in the file")
      ->check(one_of({"paired", "declared"}))
      ->default_str("paired");
  command.add_flag("--reuse", options.reuse,
                   "keep the metrics of runs from another host, release, build or environment; their times "
                   "are not compared");
  command.add_flag(
      "--retrain-times", options.retrain_times,
      "train finished runs again if their times did not count, for example because the host was busy");
}

void add_place_options(CLI::App& command, ExperimentOptions& options) {
  refuse_empty(
      command
          .add_option("--data", options.data, "folder of data sets (default: $TRAINYARD_DATA, else [data])")
          ->type_name("DIR"));
  add_yard_option(command, options.yard);
}

namespace {

// CLI::Range accepts NaN.
CLI::Validator backoff_range() {
  const auto problem = [](const std::string& text) {
    double seconds = 0;
    const bool within = CLI::detail::lexical_cast(text, seconds) && seconds >= 0 && seconds <= 3600;
    return within ? std::string() : "must be a number of seconds in [0, 3600], but is " + text;
  };
  return {problem, "in [0 - 3600]"};
}

// Accepts the names of `log::Level` only.
CLI::Validator level_word() {
  const auto problem = [](const std::string& text) {
    return log::level_named(text) ? std::string()
                                  : "must be one of " + log::level_words() + ", but is \"" + text + "\"";
  };
  return {problem, ""};
}

}  // namespace

void add_sweep_options(CLI::App& command, SweepChoices& choices) {
  add_order_option(command, choices.plan);
  command.add_flag("--failed", choices.plan.failed_only, "only failed runs, not interrupted ones");
  command.add_option("--max-retries", choices.sweep.max_retries, "how often a failed run is tried again")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      .add_option("--backoff", choices.sweep.backoff_seconds,
                  "seconds before the first retry, doubled before each further one")
      ->check(backoff_range())
      ->capture_default_str();
  command.add_flag("--fail-fast", choices.sweep.fail_fast, "end the sweep at the first failed run");
  command
      .add_option("--max-failures", choices.sweep.max_failures,
                  "start no more runs after this number of failed runs (0: no limit)")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command.add_flag("--no-wait", choices.no_wait,
                   "if another sweep has this host or its devices, fail instead of waiting");
  auto* level = command
                    .add_option_function<std::string>(
                        "--log-level",
                        [&choices](const std::string& word) { choices.log_level = log::level_named(word); },
                        "level of trainyard.log and of the logs of the ranks: " + log::level_words() +
                            " (default: $TRAINYARD_LOG, else info)")
                    ->check(level_word())
                    ->type_name("LEVEL");
  command
      .add_flag_callback(
          "--verbose", [&choices] { choices.log_level = log::Level::debug; }, "the same as --log-level debug")
      ->excludes(level);
  command.add_flag("--no-report", choices.no_report, "do not write the report");
}

}  // namespace trainyard::tools
