// trainyard logs RUN: what its ranks wrote to standard output and error; with --follow until the run ends,
// whatever number of attempts that takes.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/joined.h"
#include "base/printable.h"
#include "db/queries/queries.h"
#include "experiments/protocol/record_writer.h"
#include "orchestrator/plan/status_text.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/cli/printable_output.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

struct LogsOptions {
  std::string run;
  std::optional<int> rank, attempt;
  bool follow = false;
  std::optional<fs::path> yard;
};

constexpr auto follow_interval = std::chrono::milliseconds(200);

// A log and how far it was printed.
struct Log {
  int rank = 0;
  fs::path file;
  std::streamoff printed = 0;
};

int last_attempt(const std::vector<db::Attempt>& attempts) {
  if (attempts.empty())
    throw UserError("this run was not launched yet", "`trainyard status` says how far all are");
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
      logs.push_back({rank, folder / experiments::rank_log_name(rank)});
  return logs;
}

// To a file or a pipe each byte; to a terminal what moves no cursor but to the line's begin, and colours.
void print_log(const std::string& text) {
  std::cout << std::flush;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  write_as_it_is(STDOUT_FILENO, terminal ? models::printable_log(text) : text);
}

// What is new in it; a title where it is not the log that was printed last. Of several logs only whole lines,
// until the end of all.
void print_new(Log& log, bool titled, bool at_end, int& last_rank) {
  std::ifstream in(log.file, std::ios::binary);
  if (!in.seekg(log.printed)) return;
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (titled && !at_end) text.resize(text.rfind('\n') + 1);  // none: npos + 1 is 0
  if (text.empty()) return;
  if (titled && last_rank != log.rank) std::cout << "==> rank " << log.rank << " <==\n";
  print_log(text);
  log.printed += static_cast<std::streamoff>(text.size());
  last_rank = log.rank;
}

// How an attempt stood when the last of it was printed.
struct Printed {
  db::Attempt attempt;
  bool followed = false;  // while it ran
  std::vector<Log> logs;
};

// "rank 0" or "ranks 0, 2"; empty if each has printed something.
std::string silent_ranks(const std::vector<Log>& logs) {
  std::vector<std::string> ranks;
  for (const Log& log : logs)
    if (log.printed == 0) ranks.push_back(std::to_string(log.rank));
  if (ranks.empty()) return "";
  return (ranks.size() == 1 ? "rank " : "ranks ") + models::joined(ranks);
}

std::string end_text(const db::Attempt& attempt) {
  if (attempt.status == "running") return "is running";
  const std::string after =
      attempt.total_seconds > 0 ? " after " + orchestrator::duration_text(attempt.total_seconds) : "";
  return (attempt.status == "interrupted" ? "was interrupted" : attempt.status) + after +
         (attempt.cause.empty() ? "" : " (" + attempt.cause + ")");
}

bool has_printed(const orchestrator::Yard& yard, const std::string& key, const db::Attempt& attempt) {
  const int ranks = attempt.launch.value("world_size", 1);
  for (int rank = 0; rank < ranks; ++rank) {
    std::error_code missing;
    const auto size =
        fs::file_size(yard.attempt(key, attempt.attempt) / experiments::rank_log_name(rank), missing);
    if (!missing && size > 0) return true;
  }
  return false;
}

// Says why nothing, or not all, was printed, and where else to look. To standard error: what a rank printed
// stays as it is.
void note_silence(const Printed& printed, const orchestrator::Yard& yard, const std::string& key,
                  const std::vector<db::Attempt>& attempts) {
  const std::string silent = silent_ranks(printed.logs);
  if (silent.empty()) return;
  const db::Attempt& attempt = printed.attempt;
  std::cerr << "note: " << silent << " printed nothing in attempt " << attempt.attempt << ", which "
            << end_text(attempt) << '\n';
  for (const Log& log : printed.logs)
    if (!fs::exists(log.file)) {
      std::cerr << "      there is no log " << log.file.string() << '\n';
      return;
    }
  for (const auto& other : attempts)
    if (other.attempt != attempt.attempt && has_printed(yard, key, other))
      std::cerr << "      attempt " << other.attempt << " printed something: `trainyard logs " << key
                << " --attempt " << other.attempt << "`\n";
  const auto& strategy = attempt.launch.at("work").at("strategy");
  if (!strategy.contains("command"))
    std::cerr << "      trainyard's own ranks print nothing unless something goes wrong\n";
  std::cerr << "      `trainyard show " << key << "` has its epochs, metrics and warnings\n";
}

// With --follow until it has ended or nobody looks after it any more.
Printed print_attempt(const LogsOptions& options, const orchestrator::Yard& yard, const std::string& key,
                      int number) {
  std::vector<Log> chosen;
  int last_rank = -1;
  for (bool followed = false;; followed = true) {
    const bool watched = options.follow && orchestrator::in_use(yard);  // asked before the database
    const auto attempt = attempt_numbered(number, db::attempts_of_run(open_yard(options.yard), key));
    if (chosen.empty())
      chosen = chosen_logs(options, yard.attempt(key, number), attempt.launch.value("world_size", 1));
    const bool over = !watched || attempt.status != "running";
    for (Log& log : chosen) print_new(log, chosen.size() > 1, over, last_rank);
    if (over) return {attempt, followed, chosen};
    std::this_thread::sleep_for(follow_interval);
  }
}

// Whether the sweep that looked after it makes a further attempt, unless it is ended itself.
bool comes_again(const db::Attempt& ended) {
  return ended.status == "interrupted" ||
         (ended.status == "failed" && ended.launch.value("retries_left", 0) > 0);
}

// Waits for an attempt after that one, as long as the sweep runs.
bool has_come_again(const LogsOptions& options, const orchestrator::Yard& yard, const std::string& key,
                    int number) {
  while (true) {
    const bool watched = orchestrator::in_use(yard);
    if (last_attempt(db::attempts_of_run(open_yard(options.yard), key)) > number) return true;
    if (!watched) return false;
    std::this_thread::sleep_for(follow_interval);
  }
}

bool launched(const db::Database& database, const std::string& run) {
  const auto keys = db::keys_with_prefix(database, run);
  if (keys.empty()) return run != "last";  // a wrong name is told at once
  return keys.size() > 1 || !db::attempts_of_run(database, keys.front()).empty();
}

int logs(const LogsOptions& options) {
  if (options.follow) wait_for_first_entry(options.yard, [] { return false; });
  const auto database = open_yard(options.yard);
  const auto yard = orchestrator::yard_from(options.yard);
  while (options.follow && !launched(database, options.run) && orchestrator::in_use(yard))
    std::this_thread::sleep_for(follow_interval);
  const auto key = run_named(database, options.run);
  bool seen_running = false;  // by this program: an attempt of another sweep has nothing after it
  for (int number = options.attempt.value_or(last_attempt(db::attempts_of_run(database, key)));; ++number) {
    const Printed printed = print_attempt(options, yard, key, number);
    const db::Attempt& ended = printed.attempt;
    note_silence(printed, yard, key, db::attempts_of_run(open_yard(options.yard), key));
    if (options.follow && ended.status == "running")
      std::cerr << "note: its sweep has ended before the run did; `trainyard resume` goes on\n";
    seen_running = seen_running || printed.followed;
    if (!seen_running || options.attempt || !comes_again(ended)) return done;
    if (!has_come_again(options, yard, key, number)) return done;
    std::cout << "==> attempt " << number + 1 << " <==" << std::endl;
  }
}

}  // namespace

void add_logs(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("logs", "print what the ranks of a run wrote to standard output and error");
  auto options = std::make_shared<LogsOptions>();
  command->add_option("RUN", options->run, "key, a unique prefix of it, or `last`")->required();
  command->add_option("--rank", options->rank, "only this rank");
  command->add_option("--attempt", options->attempt, "of this attempt (default: the last)");
  command->add_flag("--follow,-f", options->follow,
                    "go on until the run ends, also through its retries (with --attempt: until that ends); "
                    "where the run waits, from its start");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return logs(*options); }; });
}

}  // namespace trainyard::tools
