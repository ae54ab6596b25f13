#include "orchestrator/sweep/recovery.h"

#include <algorithm>
#include <array>
#include <istream>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"
#include "base/plain_file.h"
#include "db/database/record_faults.h"
#include "db/ingest/ingest.h"
#include "db/queries/evidence.h"
#include "db/queries/queries.h"
#include "experiments/protocol/checkpoint.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/record_lines.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/rank/supervised_ranks.h"
#include "orchestrator/sweep/collector.h"
#include "orchestrator/yard/record_log_tail.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

struct Unfinished {
  fs::path directory;
  std::string key;
  int attempt = 0;
};

// Links are not followed: they may lead out of the yard.
std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> folders;
  std::error_code missing;
  for (const std::string& name : names_in(parent, missing))
    if (is_folder(parent / name)) folders.push_back(parent / name);
  return folders;
}

// Attempts of the yard with a run file but without an end in the database.
std::vector<Unfinished> unfinished_attempts(const Yard& yard, const db::Database& database) {
  const auto completed = db::completed_attempts(database);
  std::vector<Unfinished> unfinished;
  for (const auto& run_folder : folders_in(yard.runs()))
    for (const auto& folder : folders_in(run_folder)) {
      const auto number = attempt_number(folder.filename());
      const std::string key = run_folder.filename();
      if (number && !completed.contains({key, *number}) && fs::exists(folder / experiments::run_file_name))
        unfinished.push_back({folder, key, *number});
    }
  return unfinished;
}

// Processes of an attempt, from the record of their orchestrator. No token if it has not launched any.
LaunchedProcesses launched_processes(const fs::path& directory) {
  LaunchedProcesses launched;
  RecordLogTail log(directory / experiments::orchestrator_records_name);
  do
    for (const auto& line : log.new_lines()) {
      const auto parsed = experiments::parse_line(line);
      if (!parsed.record || parsed.record->type != "leased") continue;
      const auto& body = parsed.record->body;
      const auto since = body.find("since_ticks");
      if (since == body.end() || !experiments::fits<std::uint64_t>(*since)) continue;
      launched = {text_member(body, "token"), text_member(body, "boot_id"), since->get<std::uint64_t>()};
    }
  while (!log.at_end());
  return launched;
}

void keep_copy(const fs::path& spool) {
  fs::path kept = spool;
  fs::remove(kept += ".damaged");  // it may be a link
  fs::copy_file(spool, kept);
}

// Where the last whole line ends. Empty if the file cannot be read.
std::optional<std::streamoff> end_of_lines(std::istream& in, std::streamoff size) {
  std::array<char, 65536> block;
  while (size > 0) {
    const std::streamoff begin =
        std::max<std::streamoff>(0, size - static_cast<std::streamoff>(block.size()));
    if (!in.seekg(begin).read(block.data(), size - begin)) return std::nullopt;
    const auto end = std::string_view(block.data(), static_cast<std::size_t>(size - begin)).rfind('\n');
    if (end != std::string_view::npos) return begin + static_cast<std::streamoff>(end) + 1;
    size = begin;
  }
  return 0;
}

// Cuts zeros at the end of a file, after its last newline. After a power cut a file can have its size, but
// not its last bytes. Keeps a copy of the whole file.
void cut_zeros(const fs::path& spool) {
  PlainFileReader in(spool, O_NOFOLLOW);
  const std::streamoff size = in.seekg(0, std::ios::end).tellg();
  char last = '\n';
  if (size <= 0 || size > experiments::largest_record_log) return;
  if (!in.seekg(-1, std::ios::end).get(last) || last != '\0') return;
  const auto end = end_of_lines(in, size);
  if (!end) return;
  keep_copy(spool);
  fs::resize_file(spool, static_cast<std::uintmax_t>(*end));
}

// Bytes before the first damaged record of the orchestrator's log. Empty if none is damaged. `in_database`: the
// number of the next record there. The file may have lost the records before it.
std::optional<std::uintmax_t> sound_bytes(const fs::path& spool, const Unfinished& attempt,
                                          std::int64_t in_database) {
  std::uintmax_t bytes = 0;
  std::int64_t seq = 0;
  RecordLogTail log(spool);
  do
    for (const auto& line : log.new_lines()) {
      const auto parsed = experiments::parse_line(line);
      const auto& record = parsed.record;
      if (!record || record->run != attempt.key || record->attempt != attempt.attempt || record->rank ||
          record->seq < seq || record->seq > std::max(seq, in_database))
        return bytes;
      bytes += line.size() + 1;
      seq = record->seq + 1;
    }
  while (!log.at_end());
  return log.too_long() ? std::optional(bytes) : std::nullopt;
}

// Cuts the file before its first damaged record and keeps a copy of the whole file. Records after a damaged
// one never reach the database, so a writer must not append to them.
void cut_after_damage(const fs::path& spool, const Unfinished& attempt, std::int64_t in_database) {
  const auto sound = sound_bytes(spool, attempt, in_database);
  if (!sound) return;
  keep_copy(spool);
  fs::resize_file(spool, *sound);
}

// Appends the cause of the attempt's end. Returns why it failed: `fault`, or that a rank wrote more than it may.
std::string mark_ended(const Unfinished& attempt, const std::vector<OverLimit>& over,
                       const std::string& fault, std::int64_t in_database) {
  const fs::path spool = attempt.directory / experiments::orchestrator_records_name;
  cut_after_damage(spool, attempt, in_database);
  experiments::RecordWriter records(spool, attempt.key, attempt.attempt, std::nullopt, in_database);
  using experiments::EndReason;
  std::string failure = fault;
  for (const OverLimit& each : over) {
    if (!each.rank) continue;  // damage that was cut
    records.append("over_limit", to_json(each));
    if (failure.empty()) failure = each.why;
  }
  const EndReason reason = failure.empty() ? EndReason::stopped : EndReason::failed;
  records.append("cause",
                 {{"outcome", experiments::status_of(reason)},
                  {"error", failure.empty() ? "the orchestrator ended before this run did" : failure}});
  records.sync();
  return failure;
}

// The folder that the processes of the attempt write to, if it is another one: the yard is a copy. Empty if it is this one.
// If the named folder does not exist, the yard was moved.
fs::path original_of(const Unfinished& attempt) try {
  const fs::path named = experiments::read_launch(attempt.directory / experiments::run_file_name).records;
  return is_other_folder(named, attempt.directory) ? named : fs::path();
} catch (const UserError&) {  // the run file is damaged
  return {};
}

// Ranks of the attempt may write to its records and checkpoints until its supervisor has ended.
void require_ended(const Unfinished& unfinished) {
  if (!wait_for_supervisor(unfinished.directory))
    throw UserError(fmt::format("the processes of attempt {} are still being ended", unfinished.attempt),
                    "wait a moment and run the command again", {.file = unfinished.directory.string()});
}

int end_processes(const Unfinished& unfinished, const std::function<void(const std::string&)>& on_message) {
  if (const fs::path original = original_of(unfinished); !original.empty()) {
    on_message(unfinished.directory.string() + ": is a copy of " + original.string() +
               ", so processes of that attempt were left alone");
    return 0;
  }
  return end_leftovers(launched_processes(unfinished.directory));
}

void recover_attempt(const Unfinished& unfinished, const db::Database& database, db::Ingest& ingest,
                     const std::function<void(const std::string&)>& on_message) {
  for (const char* name : {experiments::run_file_name, experiments::orchestrator_records_name})
    require_plain(unfinished.directory / name);
  const int killed_processes = end_processes(unfinished, on_message);
  const experiments::Launch launch =
      experiments::read_launch(unfinished.directory / experiments::run_file_name);
  if (launch.key != unfinished.key || launch.attempt != unfinished.attempt)
    throw UserError("its run file belongs to another run or attempt", "move the folder away",
                    {.file = unfinished.directory.string()});
  const AttemptPlace place{unfinished.directory, launch.key, launch.attempt,
                           static_cast<int>(launch.strategy().world_size())};
  cut_zeros(unfinished.directory / experiments::orchestrator_records_name);
  for (int rank = 0; rank < place.world_size; ++rank)
    cut_zeros(unfinished.directory / experiments::rank_records_name(rank));
  Collector collector(place, experiments::to_json(launch), ingest);
  collector.collect_all();
  const auto fault =
      collector.finished() ? db::fault_at_close(database, launch.key, launch.attempt) : std::nullopt;
  const bool finished = collector.finished() && collector.over_limits().empty() && !fault;
  if (collector.refused() || finished || collector.has_cause()) return;
  for (const std::string& text : collector.take_messages())
    on_message(fmt::format("{}: attempt {}: {}", experiments::label(launch.run), launch.attempt, text));
  const std::string failure = mark_ended(unfinished, collector.over_limits(), fault ? fault->error : "",
                                         ingest.next_number(launch.key, launch.attempt, std::nullopt));
  Collector(place, experiments::to_json(launch), ingest).collect_all();
  const std::string killed =
      killed_processes > 0
          ? fmt::format("; killed {} of its processes that were still running", killed_processes)
          : "";
  const std::string end =
      failure.empty() ? "was interrupted: the orchestrator ended first" : "has failed: " + failure;
  on_message(fmt::format("{}: attempt {} {}{}", experiments::label(launch.run), launch.attempt, end, killed));
}

// Removes checkpoints of finished runs whose orchestrator was killed before it did so. A run that finished
// elsewhere and is trained again here still needs its own.
void remove_outlived_checkpoints(const Yard& yard, const db::Database& database,
                                 const std::vector<LiveAttempt>& live) {
  auto finished = db::runs_with_nothing_to_resume(database);
  for (const auto& attempt : live) finished.erase(attempt.key);
  for (const auto& run_folder : folders_in(yard.runs()))
    if (const std::string key = run_folder.filename();
        finished.contains(key) && fs::exists(run_folder / experiments::checkpoints_folder_name))
      remove_checkpoints(yard, key);
}

}  // namespace

std::vector<LiveAttempt> recover(const Yard& yard, db::Database& database,
                                 const std::function<void(const std::string&)>& on_message,
                                 const std::function<bool(const fs::path&)>& alive) {
  std::vector<LiveAttempt> live;
  db::Ingest ingest(database);
  for (const auto& unfinished : unfinished_attempts(yard, database)) {
    if (alive && original_of(unfinished).empty() && alive(unfinished.directory)) {
      live.push_back({unfinished.key, unfinished.attempt});
      continue;
    }
    require_ended(unfinished);
    try {
      recover_attempt(unfinished, database, ingest, on_message);
    } catch (const db::StorageError&) {
      throw;
    } catch (const InternalError& error) {
      on_message(unfinished.directory.string() + ": this attempt was not recovered: " + error.what());
    } catch (const UserError& error) {
      on_message(unfinished.directory.string() + ": this attempt was not recovered: " + error.what());
    }
  }
  remove_outlived_checkpoints(yard, database, live);
  return live;
}

namespace {

bool all_ranks_ended(const RankGroupFile& group) {
  for (std::size_t rank = 0; rank < group.command.ranks.size(); ++rank)
    if (!read_rank_exit(group.command.directory, static_cast<int>(rank))) return false;
  return true;
}

}  // namespace

const SlurmQueue& Reattachment::queue(const std::string& allocation) {
  const auto [queue, is_new] = queues_.try_emplace(allocation, allocation);
  if (is_new) queue->second.ask_now(std::chrono::seconds(60));
  return queue->second;
}

bool Reattachment::alive(const std::filesystem::path& attempt_folder) {
  const auto group = read_rank_group_file(attempt_folder);
  if (!group || all_ranks_ended(*group)) return false;
  const bool in_slurm = group->launcher == "slurm";  // any other launcher died with the orchestrator
  const auto job = in_slurm ? queue(group->allocation).find(group->job) : std::nullopt;
  const bool lives = job && !ended(*job);
  const bool is_step = !group->allocation.empty();
  if (lives && launcher_ == "slurm" && (!is_step || own_allocation() == group->allocation)) return true;
  if (lives && !is_step)
    throw UserError("Slurm job " + job->id + " of an earlier sweep is not over: " + group->job,
                    "continue with launcher = \"slurm\", or cancel it with `scancel " + job->id + "` first");
  abandon(attempt_folder);
  if (lives)  // a step of another allocation: nobody would notice its end
    ClientCommand(slurm_client("scancel", {"--signal=KILL", job->id})).wait(std::chrono::seconds(10));
  return false;
}

}  // namespace trainyard::orchestrator
