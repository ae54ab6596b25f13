#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include <SQLiteCpp/SQLiteCpp.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"
#include "base/number.h"
#include "base/plain_file.h"
#include "db/database/statements.h"
#include "db/ingest/file_lines.h"
#include "db/ingest/ingest.h"
#include "db/ingest/kept_rows.h"
#include "db/ingest/maintenance.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/record_lines.h"
#include "experiments/protocol/seal.h"

namespace trainyard::db {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int most_named_lines = 20;  // damaged lines of one record log

// The number between `before` and `after`, if `name` has exactly this form.
std::optional<int> number_in(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  if (name.size() <= before.size() + after.size()) return std::nullopt;
  return parse_number<int>(name.substr(before.size(), name.size() - before.size() - after.size()));
}

struct Numbered {
  int number;
  fs::path path;
};

// Entries of `folder` with names of the form `before`number`after`, sorted by number.
std::vector<Numbered> numbered(const fs::path& folder, std::string_view before, std::string_view after) {
  std::vector<Numbered> found;
  for (const std::string& name : names_in(folder))
    if (const auto number = number_in(name, before, after)) found.push_back({*number, folder / name});
  std::ranges::sort(found, {}, &Numbered::number);
  return found;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(folder))
    if (is_folder(folder / name)) found.push_back(folder / name);
  return found;
}

bool there(const fs::path& path) {
  return fs::exists(fs::symlink_status(path));
}

// A record file, identified by its path in the yard.
struct RecordLog {
  fs::path file;
  std::string run;
  int attempt = 0;
  std::optional<int> rank;

  // The first line that the orchestrator has not read, because the log exceeded a limit. 0: none.
  std::int64_t unread_line = 0;

  bool holds(const experiments::Record& record) const {
    return record.run == run && record.attempt == attempt && record.rank == rank;
  }
};

class Replayer {
 public:
  explicit Replayer(Database& database) : ingest_(database) {}

  void journal(const fs::path& file) {
    if (!there(file)) return;
    read_lines(
        file, {longest_entry,
               [&](const std::string& line, std::int64_t number) { return entry(file, line, number), true; },
               [&](const DamagedLine& line) { return damaged_line(file, line.number, line.problem), true; }});
  }

  void runs(const fs::path& folder) {
    if (!fs::is_directory(folder)) return;
    for (const fs::path& run : folders_in(folder))
      for (const Numbered& found : numbered(run, "attempt-", ""))
        if (is_folder(found.path)) attempt(found.path, run.filename().string(), found.number);
  }

  void together(const std::function<void()>& work) { ingest_.together(work); }
  bool found_damage() const { return !result_.problems.empty(); }
  Replay result() && { return std::move(result_); }

 private:
  void entry(const fs::path& file, const std::string& line, std::int64_t number) try {
    json object = json::parse(line);
    if (const std::string problem = experiments::seal_problem(line, object); !problem.empty())
      return damaged_line(file, number, problem);
    object.erase("crc");
    ingest_.journal_entry(object);
  } catch (const json::parse_error& error) {
    damaged_line(file, number, "not JSON at byte " + std::to_string(error.byte));
  } catch (const json::exception& error) {
    damaged_line(file, number, error.what());
  } catch (const InternalError& error) {
    damaged_line(file, number, error.what());
  }

  void attempt(const fs::path& folder, const std::string& run, int number) {
    const auto ranks = numbered(folder, "rank-", ".records.jsonl");
    const fs::path orchestrator = folder / experiments::orchestrator_records_name;
    const fs::path run_file = folder / experiments::run_file_name;
    if (!there(run_file) && ranks.empty() && !there(orchestrator))
      return;  // trainyard ended before the launch
    if (!take_run_file(run_file, run, number)) return;
    unread_lines_.clear();
    if (there(orchestrator)) record_log({orchestrator, run, number, std::nullopt});
    for (const Numbered& rank : ranks)
      record_log({rank.path, run, number, rank.number, unread_lines_[rank.number]});
  }

  // False if the records beside it cannot or need not be read.
  bool take_run_file(const fs::path& file, const std::string& run, int attempt) {
    const auto run_file = read_run_file(file);
    if (!run_file) return false;
    if (run_file->launch.key != run || run_file->launch.attempt != attempt) {
      damaged_file(file, 0, "belongs to another run or attempt than its folder's name says");
      return false;
    }
    try {
      return ingest_.run_file(run_file->content) != Accepted::refused;
    } catch (const InternalError& error) {
      damaged_file(file, 0, error.what());
      return false;
    }
  }

  // Empty if the file is missing or is not the JSON of a launch. Then it counts as a damaged file.
  std::optional<experiments::RunFile> read_run_file(const fs::path& file) {
    if (!there(file)) return damaged_file(file, 0, "is missing"), std::nullopt;
    if (const std::string why = why_not_plain(file); !why.empty())
      return damaged_file(file, 0, why), std::nullopt;
    const PlainContent content = plain_content(file, experiments::longest_run_file);
    if (content.error != 0)
      throw UserError("cannot be read: " + content.problem, "check it and its permissions",
                      {.file = file.string()});
    if (!content.problem.empty()) return damaged_file(file, 0, content.problem), std::nullopt;
    try {
      return experiments::run_file_from_text(content.text);
    } catch (const UserError& error) {
      return damaged_file(file, 0, error.what()), std::nullopt;
    }
  }

  // What is wrong with lines of a log that exceeded a limit is known: it has failed its run.
  void record_log(const RecordLog& log) {
    std::int64_t damaged = 0;
    const auto name_line = [&](std::int64_t number, const std::string& problem) {
      if (++damaged <= most_named_lines)
        damaged_line(log.file, number, problem);
      else
        ++result_.damaged_lines;
      return true;
    };
    const auto leave_out = [&](std::int64_t number, const std::string& problem) {
      return log.unread_line > 0 || name_line(number, problem);
    };
    const auto take = [&](const std::string& line, std::int64_t number) {
      if (number == log.unread_line) return false;
      const auto parsed = experiments::parse_line(line);
      if (!parsed.record) return leave_out(number, parsed.problem);
      if (!log.holds(*parsed.record)) return leave_out(number, "a record of another run, attempt or rank");
      ++result_.records;
      if (!log.rank) note_over_limit(*parsed.record);
      const Accepted accepted = ingest_.record(*parsed.record);
      if (accepted == Accepted::conflict)
        return name_line(number,
                         "another record has the number " + std::to_string(parsed.record->seq) + " too");
      return took(log, *parsed.record, accepted, number);
    };
    const auto unreadable = [&](const DamagedLine& line) {
      if (line.kind == DamagedLine::Kind::not_plain) return damaged_file(log.file, 0, line.problem), false;
      if (line.number == log.unread_line) return false;
      if (line.kind == DamagedLine::Kind::zeros) return leave_out(line.number, line.problem);
      damaged_file(log.file, line.number, line.problem + ", so the rest of the file is skipped");
      return false;
    };
    read_lines(log.file, {experiments::longest_record, take, unreadable});
    if (damaged > most_named_lines)
      result_.problems.push_back(log.file.string() + ": " + std::to_string(damaged - most_named_lines) +
                                 " more lines are damaged");
  }

  void note_over_limit(const experiments::Record& record) {
    if (record.type != "over_limit") return;
    const auto rank = record.body.find("of_rank"), line = record.body.find("line");
    if (rank == record.body.end() || line == record.body.end() || !experiments::fits<int>(*rank) ||
        !experiments::fits<std::int64_t>(*line))
      return;
    unread_lines_.emplace(rank->get<int>(), line->get<std::int64_t>());
  }

  // Whether the records after this one can be taken.
  bool took(const RecordLog& log, const experiments::Record& record, Accepted accepted, std::int64_t number) {
    if (accepted == Accepted::taken || accepted == Accepted::known) return true;
    damaged_file(log.file, number,
                 accepted == Accepted::gap ? "records before seq " + std::to_string(record.seq) +
                                                 " are missing, so the rest of the file is skipped"
                                           : "the run has no such rank, so the file is skipped");
    return false;
  }

  void damaged_line(const fs::path& file, std::int64_t number, const std::string& problem) {
    name_problem(file, number, problem, result_.damaged_lines);
  }
  void damaged_file(const fs::path& file, std::int64_t number, const std::string& problem) {
    name_problem(file, number, problem, result_.damaged_files);
  }
  void name_problem(const fs::path& file, std::int64_t number, const std::string& problem,
                    std::int64_t& count) {
    ++count;
    result_.problems.push_back(to_text(Location{file.string(), static_cast<int>(number), 0}) + ": " +
                               problem);
  }

  Ingest ingest_;
  Replay result_;
  std::map<int, std::int64_t> unread_lines_;  // of the attempt's ranks
};

}  // namespace

Replay replay(const fs::path& yard, Database& database, const Database* old) {
  Replayer replayer(database);
  std::vector<std::string> kept;
  translated(database.connection(), [&] {
    if (old) {
      SQLite::Statement attach(database.connection(), "ATTACH ? AS held");
      execute(attach, old->connection().getFilename());
    }
    replayer.together([&] {
      replayer.journal(yard / "journal.jsonl");
      const bool keeps = old && differing_schema(database.connection(), false).empty();
      if (keeps) {
        if (std::string line = keep_journal_rows(database.connection(), yard, replayer.found_damage());
            !line.empty()) {
          kept.push_back(std::move(line));
          replay_journal(yard, database);  // entries that only the file has
        }
      }
      replayer.runs(yard / "runs");
      if (keeps)
        for (std::string& line : keep_attempt_rows(database.connection(), yard))
          kept.push_back(std::move(line));
    });
  });
  Replay result = std::move(replayer).result();
  result.kept = std::move(kept);
  return result;
}

Replay replay_journal(const fs::path& yard, Database& database) {
  Replayer replayer(database);
  replayer.together([&] { replayer.journal(yard / "journal.jsonl"); });
  return std::move(replayer).result();
}

}  // namespace trainyard::db
