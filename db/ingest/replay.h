// Replay of the files of a yard into a database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
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

}  // namespace trainyard::db
