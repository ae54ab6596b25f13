// The one rule if the database and the files of a yard differ, for each attempt and for the journal: the files
// if they are whole, else the rows of the database.
// - An attempt's files are whole if they have at least as many records of each rank as the database.
// - The journal is whole if it has all entries of the database, or as many and no damaged line.
// - An attempt that `rm` has removed stays removed.
//
// `rebuilt` is made from the files, and the old database is attached to it as `held`. Both have one schema.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <SQLiteCpp/Database.h>

namespace trainyard::db {

// Call this after the journal was read, and before the runs. Replaces the rows of the journal, if it is not
// whole, and says so in one line. Empty if it is whole. `damaged`: it has damaged lines.
std::string keep_journal_rows(SQLite::Database& rebuilt, const std::filesystem::path& yard, bool damaged);

// Call this after the runs were read. One line per attempt whose rows were replaced.
std::vector<std::string> keep_attempt_rows(SQLite::Database& rebuilt, const std::filesystem::path& yard);

// One line if `held` lacks a table of `rebuilt`, or has another definition of it. Then its rows cannot be used.
// `with_views`: also for views and indices. The views are complete when the transaction of a replay has ended.
std::vector<std::string> differing_schema(SQLite::Database& rebuilt, bool with_views);

// One line per run, attempt or journal with rows that differ between `rebuilt` and `held`.
std::vector<std::string> differing_rows(SQLite::Database& rebuilt);

}  // namespace trainyard::db
