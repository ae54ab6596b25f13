#include "orchestrator/recovery.h"

#include <charconv>
#include <map>
#include <vector>

#include "db/queries.h"
#include "experiments/launch.h"
#include "experiments/record_writer.h"
#include "models/error.h"
#include "orchestrator/collector.h"
#include "orchestrator/leftovers.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

struct Unfinished {
  fs::path directory;
  int attempt = 0;
};

std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> folders;
  if (!fs::exists(parent)) return folders;
  for (const auto& entry : fs::directory_iterator(parent))
    if (entry.is_directory()) folders.push_back(entry.path());
  return folders;
}

// The attempts of a run that have a run file and no end in the database.
std::vector<Unfinished> unfinished_attempts(const fs::path& run_folder, const db::Database& database) {
  std::map<int, std::string> status;
  for (const auto& attempt : db::attempts_of_run(database, run_folder.filename()))
    status[attempt.attempt] = attempt.status;
  std::vector<Unfinished> unfinished;
  for (const auto& folder : folders_in(run_folder)) {
    const std::string name = folder.filename();
    int number = 0;
    if (name.rfind("attempt-", 0) != 0 || !fs::exists(folder / experiments::run_file_name)) continue;
    if (std::from_chars(name.data() + 8, name.data() + name.size(), number).ec != std::errc{}) continue;
    const auto known = status.find(number);
    if (known == status.end() || known->second == "running") unfinished.push_back({folder, number});
  }
  return unfinished;
}

std::vector<int> launched_pids(const fs::path& directory) {
  std::vector<int> pids;
  for (const auto& line : SpoolTail(directory / experiments::orchestrator_records_name).new_lines()) {
    const auto parsed = experiments::parse_line(line);
    if (!parsed.record || parsed.record->type != "launched") continue;
    const auto found = parsed.record->body.find("pids");
    if (found == parsed.record->body.end() || !found->is_array()) continue;
    for (const auto& pid : *found)
      if (pid.is_number_integer()) pids.push_back(pid.get<int>());
  }
  return pids;
}

void recover_attempt(const Unfinished& unfinished, db::Database& database, db::Ingest& ingest,
                     const std::function<void(const std::string&)>& tell) {
  const fs::path run_file = unfinished.directory / experiments::run_file_name;
  const experiments::Launch launch = experiments::read_launch(run_file);
  const int ended = end_launched(launched_pids(unfinished.directory), run_file);
  if (ingest.run_file(experiments::to_json(launch)) == db::Accepted::refused) return;  // removed by `rm`
  Collector collector(
      {unfinished.directory, launch.key, launch.attempt, static_cast<int>(launch.run.strategy.world_size())},
      database, ingest);
  collector.collect();
  if (collector.finished() || collector.has_cause()) return;
  experiments::RecordWriter records(unfinished.directory / experiments::orchestrator_records_name, launch.key,
                                    launch.attempt, std::nullopt);
  records.append("cause",
                 {{"outcome", "interrupted"}, {"error", "the orchestrator ended before this run did"}});
  records.sync();
  collector.collect();
  tell(experiments::label(launch.run) + ": attempt " + std::to_string(launch.attempt) +
       " was interrupted: the orchestrator ended before it" +
       (ended > 0 ? "; ended " + std::to_string(ended) + " of its processes that were still alive" : ""));
}

}  // namespace

void recover(const Yard& yard, db::Database& database, db::Ingest& ingest,
             const std::function<void(const std::string&)>& tell) {
  for (const auto& run_folder : folders_in(yard.root() / "runs"))
    for (const auto& unfinished : unfinished_attempts(run_folder, database)) {
      try {
        recover_attempt(unfinished, database, ingest, tell);
      } catch (const UserError& error) {
        tell(std::string("an attempt was left as it is: ") + error.what());
      }
    }
}

}  // namespace trainyard::orchestrator
