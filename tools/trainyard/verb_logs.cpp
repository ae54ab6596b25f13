// trainyard logs RUN: what its ranks wrote to standard output and error; with --follow until the attempt
// ends.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "db/queries.h"
#include "experiments/record_writer.h"
#include "models/error.h"
#include "models/printable.h"
#include "orchestrator/yard.h"
#include "tools/trainyard/command.h"
#include "tools/trainyard/open_yard.h"
#include "tools/trainyard/printable_output.h"

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

db::Attempt chosen_attempt(const LogsOptions& options, const std::vector<db::Attempt>& attempts) {
  if (attempts.empty())
    throw UserError("this run was not launched yet", "`trainyard status` says how far all are");
  if (!options.attempt) return attempts.back();
  for (const auto& attempt : attempts)
    if (attempt.attempt == *options.attempt) return attempt;
  throw UserError("there is no attempt " + std::to_string(*options.attempt),
                  "the last one is " + std::to_string(attempts.back().attempt));
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

bool says_running(const LogsOptions& options, const std::string& key, int number) {
  const auto attempts = db::attempts_of_run(open_yard(options.yard), key);
  return std::any_of(attempts.begin(), attempts.end(), [&](const auto& attempt) {
    return attempt.attempt == number && attempt.status == "running";
  });
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
  const auto attempt = chosen_attempt(options, db::attempts_of_run(database, key));
  auto chosen =
      chosen_logs(options, yard.attempt(key, attempt.attempt), attempt.launch.value("world_size", 1));
  int last_rank = -1;
  for (bool over = false; !over;) {
    const bool watched = options.follow && orchestrator::in_use(yard);
    const bool running = options.follow && says_running(options, key, attempt.attempt);
    over = !watched || !running;
    for (Log& log : chosen) print_new(log, chosen.size() > 1, over, last_rank);
    if (running && !watched)
      std::cerr << "note: its sweep has ended before the run did; `trainyard resume` goes on\n";
    if (!over) std::this_thread::sleep_for(follow_interval);
  }
  return done;
}

}  // namespace

void add_logs(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("logs", "what the ranks of a run printed");
  auto options = std::make_shared<LogsOptions>();
  command->add_option("RUN", options->run, "key, a unique prefix of it, or `last`")->required();
  command->add_option("--rank", options->rank, "only this rank");
  command->add_option("--attempt", options->attempt, "of this attempt (default: the last)");
  command->add_flag("--follow,-f", options->follow,
                    "go on until the attempt ends; where the run waits, from its start");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return logs(*options); }; });
}

}  // namespace trainyard::tools
