// The side to believe if the database and the files of a yard differ: the evidence of record numbers,
// checksums and run keys.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "db/ingest/replay.h"

namespace SQLite {
class Database;
}

namespace trainyard::db {

struct Sides {
  // Tables that differ, with the number of rows that only one side has.
  std::vector<std::string> differences;
  // "file: what it lacks" for each file with fewer records than the database has of it.
  std::vector<std::string> incomplete_files;
  // One line per run or attempt that differs, and one for the journal: which side to believe, and why.
  std::vector<std::string> beliefs;
  bool rebuild_helps = false;  // the files have, or prove, something that the database lacks
  bool rebuild_loses = false;  // the database has, or may have, something that the files lack
};

// `rebuilt`: a database that was made from the files now, with the yard's database attached as `held`.
// `replayed`: the result of making it. SQLite::Exception if the yard's database cannot be read.
Sides compare_sides(SQLite::Database& rebuilt, const std::filesystem::path& yard, const Replay& replayed);

}  // namespace trainyard::db
