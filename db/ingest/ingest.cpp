#include "db/ingest/ingest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include <SQLiteCpp/SQLiteCpp.h>

#include "base/error.h"
#include "base/json_members.h"
#include "base/plain_file.h"
#include "db/database/axis_views.h"
#include "db/database/database.h"
#include "db/database/run_states.h"
#include "db/database/statements.h"
#include "db/ingest/journal_rows.h"
#include "db/ingest/record_rows.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/record_lines.h"

namespace trainyard::db {

// The prepared statements of an `Ingest`.
struct Ingest::Statements {
  explicit Statements(SQLite::Database& connection)
      : runs(connection),
        journal(connection, runs),
        attempts(connection, runs),
        states(connection),
        records(connection, states),
        begin(connection, "SAVEPOINT one_call"),
        release(connection, "RELEASE one_call"),
        roll_back(connection, "ROLLBACK TO one_call") {}

  RunRows runs;
  JournalRows journal;
  AttemptRows attempts;
  RunStates states;
  RecordRows records;
  bool together = false;
  bool journal_taken = false;  // since the last update of the views with a column per axis
  SQLite::Statement begin;
  SQLite::Statement release;
  SQLite::Statement roll_back;

  // Run `work` completely or not at all, inside or outside a transaction.
  template <typename Work>
  void atomically(Work&& work) {
    run(begin);
    try {
      work();
      if (!together) states.refresh();
      run(release);
    } catch (...) {
      roll_back.tryReset();
      roll_back.tryExecuteStep();
      roll_back.tryReset();
      release.tryReset();
      release.tryExecuteStep();
      release.tryReset();
      throw;
    }
  }

  static void run(SQLite::Statement& statement) {
    statement.tryReset();
    statement.exec();
    statement.tryReset();
  }
};

Ingest::Ingest(Database& database)
    : database_(database), statements_(translated(database.connection(), [&] {
        return std::make_unique<Statements>(database.connection());
      })) {}

Ingest::~Ingest() = default;

void Ingest::together(const std::function<void()>& work) {
  if (statements_->together) return work();
  statements_->together = true;
  try {
    database_.transaction([&] {
      work();
      statements_->states.refresh();
      if (statements_->journal_taken) refresh_axis_views(database_.connection());
      statements_->journal_taken = false;
    });
  } catch (...) {
    statements_->together = false;
    statements_->journal_taken = false;
    statements_->states.forget();
    throw;
  }
  statements_->together = false;
}

void Ingest::replayed() {
  translated(database_.connection(), [&] {
    statements_->atomically([&] { mark_overlaps(database_.connection(), statements_->states); });
  });
}

void Ingest::journal_entry(const nlohmann::json& entry) {
  translated(database_.connection(), [&] {
    statements_->atomically([&] {
      statements_->journal.take(entry);
      if (statements_->together)
        statements_->journal_taken = true;
      else
        refresh_axis_views(database_.connection());
    });
  });
}

Accepted Ingest::run_file(const nlohmann::json& run_json) {
  return translated(database_.connection(), [&] {
    Accepted accepted = Accepted::refused;
    statements_->atomically([&] {
      accepted = statements_->attempts.take(run_json);
      if (accepted == Accepted::taken) statements_->states.changed(run_json.at("run").get<std::string>());
    });
    return accepted;
  });
}

Accepted Ingest::record(const experiments::Record& record) {
  return translated(database_.connection(), [&] {
    Accepted accepted = Accepted::refused;
    statements_->atomically([&] { accepted = statements_->records.take(record); });
    return accepted;
  });
}

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Releases before the limit of `experiments::longest_record` read lines of any length.
constexpr std::size_t longest_line = std::size_t{1} << 24;
constexpr int most_named_lines = 20;  // damaged lines of one record log

[[noreturn]] void refuse_unreadable(const fs::path& file) {
  throw UserError("cannot be read", "check its permissions", {.file = file.string()});
}

// A file of the yard. UserError if it cannot be opened or is not a plain file.
class File : public PlainFileReader {
 public:
  explicit File(const fs::path& file) : PlainFileReader(file) {
    if (!problem().empty())
      throw UserError("cannot be read: " + problem(), "check it and its permissions",
                      {.file = file.string()});
  }
};

fs::directory_iterator entries_of(const fs::path& folder) try {
  return fs::directory_iterator(folder);
} catch (const fs::filesystem_error&) {
  refuse_unreadable(folder);
}

// Call `take(line, number)` for every line that ends in a newline, until it returns false.
template <typename Take>
void for_each_line(const fs::path& file, Take&& take) {
  File in(file);
  std::string line;
  for (int number = 1; std::getline(in, line) && !in.eof(); ++number)
    if (!take(line, number)) return;
}

// Call `take(line, number)` for every line of a record log, until it returns false. Returns the number of the
// line that is too long to be read, which ends the reading. 0 if there is none.
template <typename Take>
std::int64_t for_each_record_line(const fs::path& file, Take&& take) {
  File in(file);
  experiments::RecordLines lines(longest_line);
  std::array<char, 65536> buffer;
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    lines.add(std::string_view(buffer.data(), static_cast<std::size_t>(in.gcount())));
    while (const auto line = lines.next())
      if (!take(*line, lines.count())) return 0;
    if (lines.too_long()) return lines.count() + 1;
  }
  return 0;
}

// The number between `before` and `after`, if `name` has exactly this form.
std::optional<int> number_in(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  if (name.size() <= before.size() + after.size()) return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

struct Numbered {
  int number;
  fs::path path;
};

// Entries of `folder` with names of the form `before`number`after`, sorted by number.
std::vector<Numbered> numbered(const fs::path& folder, std::string_view before, std::string_view after) {
  std::vector<Numbered> found;
  for (const fs::directory_entry& entry : entries_of(folder))
    if (const auto number = number_in(entry.path().filename().string(), before, after);
        number && !entry.is_symlink())
      found.push_back({*number, entry.path()});
  std::sort(found.begin(), found.end(),
            [](const Numbered& a, const Numbered& b) { return a.number < b.number; });
  return found;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : entries_of(folder))
    if (entry.is_directory() && !entry.is_symlink()) found.push_back(entry.path());  // a link may lead out
  std::sort(found.begin(), found.end());
  return found;
}

// A record file, identified by its path in the yard.
struct Spool {
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
    if (!fs::exists(file)) return;
    for_each_line(file, [&](const std::string& line, int number) {
      try {
        ingest_.journal_entry(json::parse(line));
      } catch (const json::parse_error& error) {
        damaged_line(file, number, "not JSON at byte " + std::to_string(error.byte));
      } catch (const json::exception& error) {
        damaged_line(file, number, error.what());
      } catch (const InternalError& error) {
        damaged_line(file, number, error.what());
      }
      return true;
    });
  }

  void runs(const fs::path& folder) {
    if (!fs::is_directory(folder)) return;
    for (const fs::path& run : folders_in(folder))
      for (const Numbered& found : numbered(run, "attempt-", ""))
        attempt(found.path, run.filename().string(), found.number);
  }

  void ended() { ingest_.replayed(); }
  void together(const std::function<void()>& work) { ingest_.together(work); }
  Replay result() && { return std::move(result_); }

 private:
  void attempt(const fs::path& folder, const std::string& run, int number) {
    const auto ranks = numbered(folder, "rank-", ".records.jsonl");
    const fs::path orchestrator = folder / experiments::orchestrator_records_name;
    const fs::path run_file = folder / experiments::run_file_name;
    if (!fs::exists(run_file) && ranks.empty() && !fs::exists(orchestrator))
      return;  // trainyard ended before the launch
    if (!take_run_file(run_file, run, number)) return;
    unread_lines_.clear();
    if (fs::exists(orchestrator)) spool({orchestrator, run, number, std::nullopt});
    for (const Numbered& rank : ranks)
      spool({rank.path, run, number, rank.number, unread_lines_[rank.number]});
  }

  // False if the records beside it cannot or need not be read.
  bool take_run_file(const fs::path& file, const std::string& run, int attempt) {
    const auto run_json = read_run_file(file);
    if (!run_json) return false;
    if (run_json->at("run") != run || run_json->at("attempt") != attempt) {
      damaged_spool(file, 0, "belongs to another run or attempt than its folder's name says");
      return false;
    }
    try {
      return ingest_.run_file(*run_json) != Accepted::refused;
    } catch (const InternalError& error) {
      damaged_spool(file, 0, error.what());
      return false;
    }
  }

  // Empty if the file is missing or is not the JSON of a launch. Then it counts as a damaged spool.
  std::optional<json> read_run_file(const fs::path& file) try {
    std::ostringstream text;
    text << File(file).rdbuf();
    json run_json = json::parse(text.str());
    experiments::launch_from_json(run_json);
    return run_json;
  } catch (const std::exception& error) {
    damaged_spool(file, 0, error.what());
    return std::nullopt;
  }

  // What is wrong with lines of a log that exceeded a limit is known: it has failed its run.
  void spool(const Spool& spool) {
    std::int64_t damaged = 0;
    const auto leave_out = [&](std::int64_t number, const std::string& problem) {
      if (spool.unread_line > 0) return;
      if (++damaged <= most_named_lines)
        damaged_line(spool.file, number, problem);
      else
        ++result_.damaged_lines;
    };
    const auto too_long = for_each_record_line(spool.file, [&](const std::string& line, std::int64_t number) {
      if (number == spool.unread_line) return false;
      const auto parsed = experiments::parse_line(line);
      if (!parsed.record) return leave_out(number, parsed.problem), true;
      if (!spool.holds(*parsed.record))
        return leave_out(number, "a record of another run, attempt or rank"), true;
      ++result_.records;
      if (!spool.rank) note_over_limit(*parsed.record);
      return take_record(spool, *parsed.record, number);
    });
    if (damaged > most_named_lines)
      result_.problems.push_back(spool.file.string() + ": " + std::to_string(damaged - most_named_lines) +
                                 " more lines are damaged");
    if (too_long > 0 && too_long != spool.unread_line)
      damaged_spool(
          spool.file, too_long,
          "longer than " + std::to_string(longest_line >> 20) + " MiB, so the rest of the file is skipped");
  }

  void note_over_limit(const experiments::Record& record) {
    if (record.type != "over_limit") return;
    const auto rank = record.body.find("of_rank"), line = record.body.find("line");
    if (rank == record.body.end() || line == record.body.end() || !experiments::fits<int>(*rank) ||
        !experiments::fits<std::int64_t>(*line))
      return;
    unread_lines_.emplace(rank->get<int>(), line->get<std::int64_t>());
  }

  bool take_record(const Spool& spool, const experiments::Record& record, std::int64_t number) {
    const Accepted accepted = ingest_.record(record);
    if (accepted == Accepted::taken || accepted == Accepted::known) return true;
    damaged_spool(spool.file, number,
                  accepted == Accepted::gap ? "records before seq " + std::to_string(record.seq) +
                                                  " are missing, so the rest of the file is skipped"
                                            : "the run has no such rank, so the file is skipped");
    return false;
  }

  void damaged_line(const fs::path& file, std::int64_t number, const std::string& problem) {
    ++result_.damaged_lines;
    result_.problems.push_back(to_text(Location{file.string(), static_cast<int>(number), 0}) + ": " +
                               problem);
  }

  void damaged_spool(const fs::path& file, std::int64_t number, const std::string& problem) {
    ++result_.damaged_spools;
    result_.problems.push_back(to_text(Location{file.string(), static_cast<int>(number), 0}) + ": " +
                               problem);
  }

  Ingest ingest_;
  Replay result_;
  std::map<int, std::int64_t> unread_lines_;  // of the attempt's ranks
};

}  // namespace

Replay replay(const fs::path& yard, Database& database) {
  Replayer replayer(database);
  replayer.together([&] {
    replayer.journal(yard / "journal.jsonl");
    replayer.runs(yard / "runs");
    replayer.ended();
  });
  return std::move(replayer).result();
}

Replay replay_journal(const fs::path& yard, Database& database) {
  Replayer replayer(database);
  replayer.together([&] { replayer.journal(yard / "journal.jsonl"); });
  return std::move(replayer).result();
}

}  // namespace trainyard::db
