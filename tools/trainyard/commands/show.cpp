// trainyard show | logs. `show` prints the values, attempts, metrics, parts of a step and log files of a run,
// and how to run one of its ranks by hand.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "db/queries/queries.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/time_parts.h"
#include "experiments/run/run.h"
#include "models/metrics.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/rank/log_limit.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

struct ShowOptions {
  std::string run;
  std::optional<fs::path> yard;
};

reports::Table values_table(const db::RunSummary& run) {
  reports::Table table;
  table.columns = {"key", "value"};
  const auto titled = [](const std::string& title) { return title.empty() ? "" : " (" + title + ")"; };
  for (const auto& [name, value] : run.axes) {
    std::string text = trainyard::to_text(value);
    if (name == "model") text += titled(run.model_title);
    if (name == "dataset") text += titled(run.dataset_title);
    table.rows.push_back({name, text});
  }
  return table;
}

// Adds a column for a value that some runs do not have, if any epoch has it.
void add_measured(reports::Table& table, const std::vector<db::EpochRow>& epochs, const std::string& title,
                  double factor, int digits, db::MetricColumn value) {
  const auto measured = [&](const db::EpochRow& epoch) { return std::isfinite(epoch[value]); };
  if (std::ranges::none_of(epochs, measured)) return;
  table.columns.push_back(reports::right_column(title));
  for (std::size_t i = 0; i < epochs.size(); ++i)
    table.rows[i].emplace_back(reports::decimals(factor * epochs[i][value], digits));
}

db::MetricColumn column_of(std::string_view phase, const models::Metric& metric) {
  return db::MetricColumn::named(fmt::format("{}_{}", phase, metric.name));
}

// Metrics and times per epoch. Only metrics of the run's task have a column.
reports::Table epochs_table(const db::RunSummary& run, const std::vector<db::EpochRow>& epochs) {
  reports::Table table;
  table.columns = {reports::right_column("epoch")};
  for (const auto& epoch : epochs) table.rows.push_back({epoch.epoch});
  for (const std::string_view phase : {"train", "validation"})
    for (const models::Metric& metric : models::all_metrics)
      add_measured(table, epochs,
                   fmt::format("{} {}{}", phase, reports::title_of(run, metric), metric.kind->suffix()),
                   metric.kind->scale, metric.digits, column_of(phase, metric));
  for (const reports::Metric& metric : reports::metrics())
    if (!metric.own_name.empty() && !metric.epoch_column.empty())
      add_measured(table, epochs, reports::lower_first(metric.title) + metric.kind->suffix(), 1, 4,
                   reports::final_column(metric));
  add_measured(table, epochs, "train s", 1, 3, "train_seconds");
  add_measured(table, epochs, "validation s", 1, 3, "validation_seconds");
  constexpr double gibibyte = 1 << 30;
  add_measured(table, epochs, "train J", 1, 1, "energy_joules");
  add_measured(table, epochs, "peak GiB", 1 / gibibyte, 3, "peak_device_bytes");
  return table;
}

// Mean time of each part of a step, over ranks and timed epochs. If the number of steps was not recorded, the
// parts are those of an epoch.
std::string parts_text(const db::Database& database, const db::RunSummary& run) {
  const auto parts = db::time_parts(database, run.experiment, run.run_key);
  if (parts.empty()) return "";
  double whole = 0;
  for (const auto& [name, seconds] : parts.front().seconds) whole += seconds;
  if (!(whole > 0)) return "";
  const double steps = db::steps_per_epoch(database, run.run_key);
  const bool per_step = steps > 0;
  reports::Table table;
  table.columns = {per_step ? "part of a step" : "part of an epoch",
                   reports::right_column(per_step ? "ms" : "s"), reports::right_column("%")};
  for (const std::string_view part : experiments::time_parts) {
    const auto found = parts.front().seconds.find(std::string(part));
    if (found == parts.front().seconds.end() || found->second == 0) continue;
    table.rows.push_back({reports::with_spaces(found->first),
                          reports::decimals(per_step ? 1e3 * found->second / steps : found->second, 3),
                          reports::decimals(100 * found->second / whole, 1)});
  }
  return "\n" + aligned_table(table);
}

// Metrics after training: "test loss 0.31, test accuracy 91.20 %". BLEU is on the scale from 0 to 100.
std::string test_text(const db::RunSummary& run, const std::vector<db::FinalMetrics>& finals) {
  std::string text;
  const auto add = [&](const std::string& title, double value, int digits, const std::string& suffix) {
    if (std::isfinite(value))
      text += fmt::format("{}{} {}{}", text.empty() ? "\n" : ", ", title, reports::decimals(value, digits),
                          suffix);
  };
  const db::FinalMetrics final = finals.empty() ? db::FinalMetrics{} : finals.front();
  for (const models::Metric& metric : models::all_metrics)
    add("test " + reports::title_of(run, metric),
        metric.kind->scale *
            (metric.name == "accuracy" ? run.test_accuracy : final[column_of("test", metric)]),
        metric.digits, metric.kind->suffix());
  for (const reports::Metric& metric : reports::metrics())
    if (!metric.own_name.empty() && metric.epoch_column.empty())
      add(reports::lower_first(metric.title), final[reports::final_column(metric)], 4, metric.kind->suffix());
  return text.empty() ? "" : text + "\n";
}

std::string origin_text(const db::Attempt& attempt) {
  const auto resumed = attempt.launch.find("resumes_attempt");
  if (resumed == attempt.launch.end()) return "";
  return fmt::format(", resumes after epoch {} of attempt {}",
                     attempt.launch.value("resumes_after_epoch", std::int64_t{0}), resumed->get<int>());
}

void print_warnings(const std::vector<db::Warning>& warnings, int attempt) {
  for (const db::Warning& warning : warnings)
    if (warning.attempt == attempt)
      std::cout << "  " << warning.level << " of "
                << (warning.rank < 0 ? "trainyard" : "rank " + std::to_string(warning.rank)) << ": "
                << warning.text << '\n';
}

std::int64_t ranks_of(const db::Attempt& attempt) {
  return attempt.launch.at("world_size").get<std::int64_t>();
}

void print_attempt(const db::Attempt& attempt, const fs::path& folder,
                   const std::map<int, std::string>& jobs) {
  const auto job = jobs.find(attempt.attempt);
  const std::string where = job == jobs.end() ? "" : ", Slurm job " + job->second;
  std::cout << fmt::format("attempt {}: {}{}, started {}{}{}{}\n", attempt.attempt, attempt.status,
                           attempt.total_seconds > 0 ? " after " + duration_text(attempt.total_seconds) : "",
                           attempt.started, where, origin_text(attempt),
                           attempt.cause.empty() ? "" : ": " + attempt.cause);
  if (std::isfinite(attempt.other_share)) {
    std::cout << fmt::format("  other processes took {:.1f} % of its cores", 100 * attempt.other_share);
    if (attempt.measured_epochs > 0)
      std::cout << fmt::format(", and disturbed {} of {} epochs", attempt.disturbed_epochs,
                               attempt.measured_epochs);
    std::cout << '\n';
  }
  if (!attempt.times_problem.empty()) std::cout << "  times do not count: " << attempt.times_problem << '\n';
  for (std::int64_t rank = 0; rank < ranks_of(attempt); ++rank)
    std::cout << "  log of rank " << rank << ": "
              << (folder / experiments::rank_log_name(static_cast<int>(rank))).string() << '\n';
}

// Print how to run a rank by hand. Its records go to another folder, so that those of the attempt stay.
void print_by_hand(const db::Attempt& attempt, const fs::path& folder) {
  const std::int64_t ranks = ranks_of(attempt);
  const auto& strategy = attempt.launch.at("work").at("strategy");
  if (strategy.contains("command")) {  // the user's own program
    std::cout << fmt::format("\ncommand of each rank, in {}: {}\n", strategy.value("folder", std::string()),
                             strategy.at("command").dump());
    return;
  }
  const auto programs = orchestrator::find_programs(false);
  if (programs.runner.empty()) return;
  const auto run_file = shell_quoted((folder / experiments::run_file_name).string());
  const auto runner = shell_quoted(programs.runner.string());
  if (ranks == 1) {
    std::cout << fmt::format("\nby hand: TRAINYARD_RUN={} {} --records by-hand\n", run_file, runner);
    return;
  }
  std::cout << fmt::format(
      "\nby hand: start each rank r of 0 to {} in a terminal of its own (before a second try, delete by-hand "
      "and by-hand-store)\n"
      "  RANK=r WORLD_SIZE={} TRAINYARD_STORE=by-hand-store TRAINYARD_RUN={} \\\n  {} --records by-hand\n",
      ranks - 1, ranks, run_file, runner);
}

// The folder in the yard, which may have been moved. If the yard lacks it, the recorded folder.
fs::path folder_of(const db::Attempt& attempt, const orchestrator::Yard& yard, const std::string& key) {
  const fs::path here = yard.attempt(key, attempt.attempt);
  return fs::exists(here) ? here : fs::path(attempt.directory);
}

// The values of one run, in its epochs and at its end.
reports::ReportData values_of(const db::Database& database, const db::RunSummary& run) {
  reports::ReportData data;
  data.experiment = run.experiment;
  if (!run.experiment.empty()) data.plan = db::latest_plan(database, run.experiment);
  data.averages = db::epochs_of_run(database, run.run_key);
  if (auto final = db::final_metrics_of_run(database, run.run_key)) data.finals.push_back(std::move(*final));
  reports::add_own_metrics(database, data);
  return data;
}

void print_run(const db::Database& database, const orchestrator::Yard& yard, const db::RunSummary& run) {
  std::cout << fmt::format("{}  {} {} seed {}: {}, experiment {}\n\n", run.run_key, run.model, run.strategy,
                           run.seed, run.status, run.experiment)
            << aligned_table(values_table(run)) << '\n';
  const auto attempts = db::attempts_of_run(database, run.run_key);
  const auto jobs = db::jobs_of_run(database, run.run_key);
  const auto warnings = db::warnings_of_run(database, run.run_key);
  for (const auto& attempt : attempts) {
    print_attempt(attempt, folder_of(attempt, yard, run.run_key), jobs);
    print_warnings(warnings, attempt.attempt);
  }
  const reports::ReportData data = values_of(database, run);
  if (!data.averages.empty()) std::cout << '\n' << aligned_table(epochs_table(run, data.averages));
  std::cout << test_text(run, data.finals) << parts_text(database, run);
  if (!attempts.empty()) print_by_hand(attempts.back(), folder_of(attempts.back(), yard, run.run_key));
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
  const auto [command, options] =
      add_verb(program, invocation, "show",
               "show one run: values, attempts, metrics, step times and logs\n\n"
               "Attempts have their warnings. The last lines show how to run one rank by hand.",
               show);
  command->add_option("RUN", options->run, "key, a unique prefix of it, or `last`")->required();
  add_yard_option(*command, options->yard);
}

// trainyard logs RUN: prints standard output and error of its ranks. --follow continues until the attempt ends.
// Without RUN it prints trainyard.log.

namespace {

struct LogsOptions {
  std::optional<std::string> run;  // without it trainyard.log
  std::optional<int> rank, attempt;
  bool follow = false;
  std::optional<fs::path> yard;
};

constexpr auto follow_interval = std::chrono::milliseconds(200);

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// A log file, and the number of bytes printed so far.
struct Log {
  fs::path file;
  int rank = 0;
  std::size_t printed = 0;
  FileDescriptor fd = {};
};

// The next megabyte of the open file. Empty if there is nothing more now. A program can make a log of any size. If
// it is larger than trainyard leaves it, only its end is printed.
std::string next_part(Log& log) {
  struct stat open {};
  if (!log.fd || ::fstat(log.fd.get(), &open) != 0) return "";
  const auto size = static_cast<std::size_t>(open.st_size);
  if (size < log.printed) log.printed = 0;  // it was shortened
  if (size - log.printed > orchestrator::largest_log) {
    std::cerr << fmt::format("note: {} has {} MiB; only the last 1 MiB is printed\n", log.file.string(),
                             size / mebibyte);
    log.printed = size - mebibyte;
  }
  std::string text(mebibyte, '\0');
  const ssize_t got = ::pread(log.fd.get(), text.data(), text.size(), static_cast<off_t>(log.printed));
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  log.printed += text.size();
  return text;
}

// The next part of the log. If the file was replaced, the end of the old file and then the new one.
std::string next_text(Log& log) {
  std::string text = next_part(log);
  if (text.size() == mebibyte || is_still_at(log.fd.get(), log.file)) return text;
  log.fd = std::move(open_plain(log.file, O_RDONLY | O_NOFOLLOW).fd);
  log.printed = 0;
  return text + next_part(log);
}

int last_attempt(const std::vector<db::Attempt>& attempts) {
  if (attempts.empty())
    throw UserError("this run was not launched yet", "`trainyard status` shows the state of all runs");
  return attempts.back().attempt;
}

const db::Attempt& attempt_numbered(int number, const std::vector<db::Attempt>& attempts) {
  for (const auto& attempt : attempts)
    if (attempt.attempt == number) return attempt;
  throw UserError("there is no attempt " + std::to_string(number),
                  "the last one is " + std::to_string(last_attempt(attempts)));
}

std::vector<Log> chosen_logs(const LogsOptions& options, const fs::path& folder, int ranks) {
  if (options.rank && (*options.rank < 0 || *options.rank >= ranks))
    throw UserError("there is no rank " + std::to_string(*options.rank),
                    "the run has ranks 0 to " + std::to_string(ranks - 1));
  std::vector<Log> logs;
  for (int rank = 0; rank < ranks; ++rank)
    if (!options.rank || *options.rank == rank)
      logs.push_back({folder / experiments::rank_log_name(rank), rank});
  return logs;
}

// Print every byte to a file or pipe. To a terminal, escape all control sequences but colours and "\r".
void print_log(const std::string& text) {
  std::cout << std::flush;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  write_all(STDOUT_FILENO, terminal ? printable_log(text) : text);
}

// Print what is new in a log. `titled`: several logs are printed, so print a title if the log changes, and only
// complete lines until `at_end`. A line that is longer than a megabyte is printed in pieces.
void print_new(Log& log, bool titled, bool at_end, int& last_rank) {
  for (bool more = true; more;) {
    std::string text = next_text(log);
    more = text.size() >= mebibyte;
    const auto whole = text.rfind('\n') + 1;  // no newline: npos + 1 is 0
    if (titled && (more ? whole > 0 : !at_end)) {
      log.printed -= std::min(log.printed, text.size() - whole);
      text.resize(whole);
    }
    if (text.empty()) return;
    if (titled && last_rank != log.rank) std::cout << "==> rank " << log.rank << " <==\n";
    print_log(text);
    last_rank = log.rank;
  }
}

// "rank 0" or "ranks 0, 2". Empty if all ranks have printed something.
std::string silent_ranks(const std::vector<Log>& logs) {
  std::vector<std::string> ranks;
  for (const Log& log : logs)
    if (log.printed == 0) ranks.push_back(std::to_string(log.rank));
  if (ranks.empty()) return "";
  return (ranks.size() == 1 ? "rank " : "ranks ") + joined(ranks);
}

std::string end_text(const db::Attempt& attempt) {
  if (attempt.status == "running") return "is running";
  const std::string after = attempt.total_seconds > 0 ? " after " + duration_text(attempt.total_seconds) : "";
  return (attempt.status == "interrupted" ? "was interrupted" : attempt.status) + after +
         (attempt.cause.empty() ? "" : " (" + attempt.cause + ")");
}

// Name the ranks without output, and other places to look. Written to standard error, so that standard output
// has only the output of ranks.
void note_silence(const db::Attempt& attempt, const std::vector<Log>& logs, const std::string& key) {
  const std::string silent = silent_ranks(logs);
  if (silent.empty()) return;
  std::cerr << "note: " << silent << " printed nothing in attempt " << attempt.attempt << ", which "
            << end_text(attempt) << '\n';
  for (const Log& log : logs)
    if (!fs::exists(log.file)) {
      std::cerr << "      there is no log " << log.file.string() << '\n';
      return;
    }
  const auto& strategy = attempt.launch.at("work").at("strategy");
  if (!strategy.contains("command"))
    std::cerr << "      by default trainyard's own ranks log at level info; this sweep may have used another "
                 "--log-level\n";
  std::cerr << "      `trainyard show " << key << "` has its epochs, metrics and warnings\n";
}

// Print the logs of an attempt. With --follow, until the attempt or its sweep ends.
void print_attempt(const LogsOptions& options, const orchestrator::Yard& yard, const std::string& key,
                   int number) {
  std::vector<Log> chosen;
  int last_rank = -1;
  while (true) {
    // before reading the database: the sweep may end in between
    const bool watched = options.follow && orchestrator::in_use(yard);
    const auto attempt = attempt_numbered(number, db::attempts_of_run(open_yard(options.yard), key));
    if (chosen.empty())
      chosen = chosen_logs(options, yard.attempt(key, number), attempt.launch.value("world_size", 1));
    const bool over = !watched || attempt.status != "running";
    for (Log& log : chosen) print_new(log, chosen.size() > 1, over, last_rank);
    if (over) {
      note_silence(attempt, chosen, key);
      if (options.follow && attempt.status == "running")
        std::cerr << "note: its sweep ended before the run; `trainyard resume` continues it\n";
      if (options.follow && attempt.status == "failed" && attempt.launch.value("retries_left", 0) > 0)
        std::cerr << "note: attempt " << number << " failed; repeat the command to follow the next attempt\n";
      return;
    }
    std::this_thread::sleep_for(follow_interval);
  }
}

// Print trainyard.log. With --follow, until no sweep runs in the yard.
int own_log(const LogsOptions& options) {
  if (options.rank || options.attempt)
    throw UserError("--rank and --attempt need a run", "name one, for example `last`");
  const auto yard = orchestrator::yard_from(options.yard);
  orchestrator::refuse_links(yard);
  const auto watched = [&] { return options.follow && orchestrator::in_use(yard); };
  while (!fs::exists(yard.log()) && watched()) std::this_thread::sleep_for(follow_interval);
  Log log{yard.log()};
  if (!fs::is_regular_file(fs::symlink_status(log.file)))
    throw UserError("there is no " + yard.log().string(),
                    "`trainyard run` writes it; name the folder of results with --yard or TRAINYARD_HOME");
  while (true) {
    const bool more_may_come = watched();  // before reading the log
    int last_rank = 0;
    print_new(log, false, true, last_rank);
    if (!more_may_come) return done;
    std::this_thread::sleep_for(follow_interval);
  }
}

bool launched(const db::Database& database, const std::string& run) {
  const auto keys = db::keys_with_prefix(database, run);
  if (keys.empty()) return run != "last";  // a wrong name is reported at once
  return keys.size() > 1 || !db::attempts_of_run(database, keys.front()).empty();
}

int logs(const LogsOptions& options) {
  if (!options.run) return own_log(options);
  if (options.follow) wait_for_first_entry(options.yard, [] { return false; });
  const auto database = open_yard(options.yard);
  while (options.follow && !launched(database, *options.run) &&
         orchestrator::in_use(orchestrator::yard_from(options.yard)))
    std::this_thread::sleep_for(follow_interval);
  const auto key = run_named(database, *options.run);
  print_attempt(options, orchestrator::yard_from(options.yard), key,
                options.attempt.value_or(last_attempt(db::attempts_of_run(database, key))));
  return done;
}

}  // namespace

void add_logs(CLI::App& program, Invocation& invocation) {
  const auto [command, options] =
      add_verb(program, invocation, "logs",
               "print what the ranks of a run wrote, or what trainyard logged\n\n"
               "Without RUN it prints trainyard.log: what was launched, seen and decided.",
               logs);
  command->add_option_function<std::string>(
      "RUN", [&named = options->run](const std::string& run) { named = run; },
      "key, a unique prefix of it, or `last`");
  command->add_option("--rank", options->rank, "only this rank");
  command->add_option("--attempt", options->attempt, "only this attempt (default: the last)");
  command->add_flag("--follow,-f", options->follow,
                    "continue until the attempt ends (without RUN: until no sweep runs)");
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
