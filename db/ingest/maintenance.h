// Looking after a yard's database: is it sound, does it say what the files beside it say, a copy of it, and
// all of it again from those files. Used by `trainyard db` and before a sweep.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "db/ingest/ingest.h"

namespace trainyard::db {

// What is wrong with the database: pages, indices and references as SQLite sees them. Empty where it is
// sound.
std::vector<std::string> damage(const Database& database);

// What comes to light when the yard's files are read again.
struct FileCheck {
  // Tables in which the database and one made again from the files differ, with the numbers of rows that only
  // one of them has. Empty where they say the same, and where nothing was compared.
  std::vector<std::string> differences;
  // "file:line: what is wrong" of all that a rebuild leaves out.
  std::vector<std::string> unreadable;
};
// Where the database made again lies meanwhile: one that may only read the yard needs no place in it.
enum class Workplace { yard, temporary_files };
// Nothing may write to the yard meanwhile. Without a database (null) nothing is compared. UserError where a
// file or folder cannot be read.
FileCheck check_files(const std::filesystem::path& yard, const Database* database,
                      Workplace workplace = Workplace::yard);

// A consistent copy of one moment, also while a sweep writes: whole, or not there. UserError where `to` is
// there already, or is just being written by another copy.
void back_up(const Database& database, const std::filesystem::path& to);

// Makes the database of the yard again from journal and spools, beside the old one, and puts it in its place
// when it is whole; the old file is kept as results.db.before-rebuild. The yard must be locked.
Replay rebuild(const std::filesystem::path& yard);

// Opens the yard's database for writing. The yard must be locked. UserError on a network file system.
// - An empty database (it was moved away, or its writer was killed at the very beginning) gets all that the
//   files hold. If it lacks entries of the journal (its writer was killed between the two), it gets those.
// - A database of an older schema is made again from the files, and kept as results.db.schema-N. `tell` is
// told.
//   If a run or an attempt that it knows is not in the files, nothing is replaced: UserError that names it.
using Tell = std::function<void(const std::string& line)>;
Database open_yard_for_writing(
    const std::filesystem::path& yard, const Tell& tell = [](const std::string&) {});

// The file systems a database must not lie on. SQLite's write-ahead log needs shared memory and locks of one
// host; on a network file system both can fail silently, and a database is damaged then.

// The name of a network file system by the magic number of statfs(2) ("NFS", "Lustre", …); empty where it is
// none that is known.
std::string network_file_system(unsigned long magic);

// UserError where `folder` lies on one. A folder that is not there counts as its nearest parent.
void refuse_network_file_system(const std::filesystem::path& folder);

}  // namespace trainyard::db
