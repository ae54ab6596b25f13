// From the files of a whole yard to rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "db/database/database.h"

namespace trainyard::db {

// Replays journal.jsonl and every spool below runs/ of `yard` into `database` (an empty one gives the same
// views as the one written during the runs), in one transaction. Returns the number of records read; damaged
// lines are counted and left out, and so is what follows a missing record in its spool. A line without its
// newline is not there yet. UserError where a file cannot be read.
struct Replay {
  std::int64_t records = 0;
  std::int64_t damaged_lines = 0;
  std::int64_t damaged_spools = 0;    // with a record missing, or without a run.json that can be read
  std::vector<std::string> problems;  // "file:line: what is wrong", each one of the above
};
Replay replay(const std::filesystem::path& yard, Database& database);
// The same of the journal alone.
Replay replay_journal(const std::filesystem::path& yard, Database& database);

}  // namespace trainyard::db
