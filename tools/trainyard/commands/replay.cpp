// trainyard replay: trains a run of asynchronous servers again in one process, from the logs of its servers, and compares
// the parameters after each epoch bit by bit.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "db/queries/evidence.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/server_log.h"
#include "orchestrator/rank/process.h"
#include "orchestrator/resources/programs.h"
#include "reports/format/aligned_text.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

struct ReplayOptions {
  std::string run;
  std::optional<fs::path> yard;
};

// A new folder outside of the yard, which ends with this object.
class ScratchFolder {
 public:
  ScratchFolder() : path_((fs::temp_directory_path() / "trainyard-replay-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw_file_error(path_);
  }
  ~ScratchFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  fs::path path() const { return path_; }

 private:
  std::string path_;
};

void copy_logs(const orchestrator::Yard& yard, const std::string& key,
               const std::vector<db::RecordedWeights>& epochs, std::int64_t servers, const fs::path& to) {
  fs::create_directory(to);
  for (const db::RecordedWeights& epoch : epochs)
    for (int server = 0; server < servers; ++server) {
      const std::string name = experiments::server_log_name(server, epoch.epoch);
      experiments::write_server_log(to / name,
                                    experiments::read_server_log(yard.attempt(key, epoch.attempt) / name));
    }
}

// False if the user has stopped it. UserError with the program's own reason.
bool train_again(const fs::path& run_file, const fs::path& folder, const fs::path& logs) {
  const fs::path output = folder / "output";
  const auto process =
      orchestrator::start_process({.argv = {orchestrator::find_programs().runner.string(), "--records",
                                            (folder / "records").string(), "--replay", logs.string()},
                                   .environment = {{"TRAINYARD_RUN", run_file.string()}},
                                   .cores = {},
                                   .log = output});
  constexpr std::chrono::milliseconds pause{20};
  const StopSignal stop;
  auto status = process->poll();
  for (; !status && stop.count() == 0; status = process->poll()) std::this_thread::sleep_for(pause);
  if (!status) return false;
  if (status->clean()) return true;
  const auto lines = nonempty_lines(whole_file(output));
  throw UserError("the run could not be replayed: " +
                  (lines.empty() ? to_text(*status) : printable_line(lines.back())));
}

std::map<std::int64_t, std::string> weights_in(const fs::path& records) {
  std::map<std::int64_t, std::string> weights;
  for (const std::string& line : nonempty_lines(whole_file(records)))
    if (const auto record = nlohmann::json::parse(line, nullptr, false);
        record.is_object() && record.contains("weights"))
      weights[record.at("epoch").get<std::int64_t>()] = record.at("weights").get<std::string>();
  return weights;
}

int replay(const ReplayOptions& options) {
  const auto database = open_yard(options.yard);
  const std::string key = run_named(database, options.run);
  const auto epochs = db::recorded_weights(database, key);
  if (epochs.empty())
    throw UserError("run " + key + " has no epoch of asynchronous servers",
                    "every other strategy gives the same result when it is trained again");
  const orchestrator::Yard yard = existing_yard(options.yard);
  const fs::path run_file =
      fs::absolute(yard.attempt(key, epochs.back().attempt) / experiments::run_file_name);
  const experiments::Launch launch = experiments::read_launch(run_file);
  const ScratchFolder scratch;
  copy_logs(yard, key, epochs, launch.run.strategy.servers, scratch.path() / "logs");
  if (!train_again(run_file, scratch.path(), scratch.path() / "logs")) return interrupted;
  auto again = weights_in(scratch.path() / "records" / experiments::rank_records_name(0));

  reports::Table table;
  table.columns = {reports::right_column("epoch"), "parameters of the run", "of its replay"};
  std::size_t equal = 0;
  for (const db::RecordedWeights& epoch : epochs) {
    table.rows.push_back({std::to_string(epoch.epoch), epoch.hash, again[epoch.epoch]});
    if (epoch.hash == again[epoch.epoch]) ++equal;
  }
  const bool all = equal == epochs.size();
  std::cout << reports::aligned_table(table, output_width())
            << (all ? "\nThe replay has the parameters of the run, bit by bit.\n"
                    : fmt::format("\nThe replay differs in {}.\n", counted(epochs.size() - equal, "epoch")));
  return all ? done : run_failed;
}

}  // namespace

void add_replay(CLI::App& program, Invocation& invocation) {
  const auto [command, options] = add_verb(
      program, invocation, "replay",
      "train a run of asynchronous servers again, and compare its parameters\n\n"
      "Such a run depends on which replica was faster. Its servers have logged their order, so one process "
      "can repeat it bit by bit (docs/strategies.md).",
      replay);
  command->add_option("RUN", options->run, "key, a unique prefix of it, or `last`")->required();
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
