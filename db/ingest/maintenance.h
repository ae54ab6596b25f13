// Maintenance of a yard's database: check it, compare it with its files, copy it, rebuild it by a replay of the files.
// Used by `trainyard db` and before a sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/database/database.h"

namespace trainyard::db {

// The result of a replay.
struct Replay {
  std::int64_t records = 0;
  std::int64_t damaged_lines = 0;
  std::int64_t damaged_files = 0;  // a record is missing, or a file is missing, damaged or not a plain file
  // "file:line: what is wrong" for each of the above, at most 20 damaged lines of each record log.
  std::vector<std::string> problems;
  std::vector<std::string>
      kept;  // one line per attempt, or for the journal, whose rows are from the old database
};

// Replay of journal.jsonl and of all record files below runs/ of `yard`, in one transaction. An empty
// database gets the same views as the one that was written during the runs. If `old` is given, it is attached
// as `held`, and its rows are used if files are not whole (db/ingest/kept_rows.h).
// - Damaged lines are named and skipped, and so are the records after a missing one.
// - The key of each run must be that of its work (experiments/run/run.h), else the entry or file is damaged.
// - Zeros are damage. A last line without its newline is ignored, because it is still being written.
// - If a record log exceeded a limit, it is read up to the line where the orchestrator stopped.
// - UserError if a file cannot be read.
Replay replay(const std::filesystem::path& yard, Database& database, const Database* old = nullptr);
// The same for the journal only.
Replay replay_journal(const std::filesystem::path& yard, Database& database);

// Damaged pages, indices and references that SQLite finds. Empty if the database is intact.
std::vector<std::string> damage(const Database& database);

// What a rebuild would do (db/ingest/kept_rows.h).
struct FileCheck {
  std::vector<std::string> unreadable;   // "file:line: what is wrong" for everything that it skips
  std::vector<std::string> kept;         // attempts, or the journal, whose rows it keeps
  std::vector<std::string> differences;  // other rows of runs and attempts, which it takes from the files
};
// The rebuilt database is in temporary files (TMPDIR). Nobody may write to the yard meanwhile. If `database` is
// null, only the files are read. UserError if a file or folder cannot be read.
FileCheck check_files(const std::filesystem::path& yard, const Database* database);

// Copy a consistent snapshot, also while a sweep writes. `to` is complete or does not exist. UserError if
// `to` exists already, or if another copy is writing it.
void back_up(const Database& database, const std::filesystem::path& to);

// Rebuild the yard's database from journal and record files, and from the rows of the old one if files are not
// whole. The new file replaces the old one when it is complete. The old file is kept as
// results.db.before-rebuild, or before-rebuild-2 and so on. The yard must be locked.
struct Rebuild {
  Replay replayed;
  std::string unused;          // why no rows of the old database were used, if there is one
  std::filesystem::path kept;  // the old database, if there was one
};
Rebuild rebuild(const std::filesystem::path& yard);

// Open the yard's database for writing. The yard must be locked. UserError on a network file system, or if
// the yard has another format.
// - An empty database is filled from the files. It was moved away, or its writer was killed at the beginning.
// - If journal entries are missing, they are added. A writer was killed after it wrote the journal.
// - A database of another schema is rebuilt from the files. `on_message` gets the messages.
using OnMessage = std::function<void(const std::string& line)>;
Database open_yard_for_writing(
    const std::filesystem::path& yard, const OnMessage& on_message = [](const std::string&) {});

// UserError if the first entry of the yard's journal has another format (`experiments::format_version`).
void refuse_other_format(const std::filesystem::path& yard);

// Whether a file system type of /proc/self/mounts is one of a network: "nfs4", "fuse.sshfs".
// - SQLite's write-ahead log needs shared memory and locks of one host. Both can fail silently on a network file
//   system, which damages the database.
// - "9p" and other types of FUSE are not refused, because local disks are mounted with them too.
bool is_network_file_system(std::string_view type);

// UserError if `folder` is on a network file system. If it does not exist, its nearest parent is checked.
void refuse_network_file_system(const std::filesystem::path& folder);

}  // namespace trainyard::db
