#include "db/ingest/maintenance.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "db/database/statements.h"
#include "db/ingest/file_lines.h"
#include "db/ingest/kept_rows.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

constexpr const char* file_name = "results.db";

fs::path with_suffix(fs::path file, const char* suffix) {
  file += suffix;
  return file;
}

// Remove a database and the files that SQLite keeps beside it.
void remove_database(const fs::path& file) {
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(with_suffix(file, suffix));
}

// At least the number of lines of a file. A last line without its newline does not count.
std::int64_t line_count(const fs::path& file) {
  std::int64_t lines = 0;
  if (!fs::exists(fs::symlink_status(file))) return lines;
  read_lines(file,
             {longest_entry,
              [&](const std::string& line, std::int64_t) { return lines += line.empty() ? 0 : 1, true; },
              [&](const DamagedLine&) { return ++lines, true; }});
  return lines;
}

// `file`, or `file`-2, `file`-3, … if it exists. An earlier database may be the only one with a result.
fs::path unused(const fs::path& file) {
  fs::path free = file;
  for (int number = 2; fs::exists(fs::symlink_status(free)); ++number)
    free = with_suffix(file, ("-" + std::to_string(number)).c_str());
  return free;
}

// A kill between these steps is safe. Without a database the next sweep replays the files, and the old log is
// moved before the database.
void replace(const fs::path& file, const fs::path& fresh, const fs::path& before) {
  for (const char* suffix : {"-shm", "-wal", ""})
    if (fs::exists(with_suffix(file, suffix)))
      fs::rename(with_suffix(file, suffix), with_suffix(before, suffix));
  fs::rename(fresh, file);
  sync_folder(file.parent_path());
}

// The database, if it exists and its rows can be used. Else `why` is set, unless it does not exist.
std::optional<Database> usable_database(const fs::path& file, std::string& why) try {
  if (!fs::exists(file)) return std::nullopt;
  Database database = Database::open_read_only(file);
  const auto found = damage(database);
  if (found.empty()) return database;
  why = file.string() + " is damaged: " + found.front();
  return std::nullopt;
} catch (const UserError& error) {
  why = error.what();
  return std::nullopt;
}

Database open_or_rebuild(const fs::path& yard, const OnMessage& on_message) try {
  return Database::open_for_writing(yard / file_name);
} catch (const OtherSchemaError&) {
  const Rebuild made = rebuild(yard);
  for (const std::string& problem : made.replayed.problems) on_message(problem);
  on_message((yard / file_name).string() + " had another schema and was rebuilt from " +
             std::to_string(made.replayed.records) + " records. The old file is kept as " +
             made.kept.filename().string());
  return Database::open_for_writing(yard / file_name);
}

void refuse_existing(const fs::path& file) {
  if (fs::exists(file)) throw UserError("already exists", "name another file", {.file = file.string()});
}

// FILE.unfinished, empty and locked. The destructor removes it unless it was renamed to FILE.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const fs::path& file)
      : file_(file),
        path_(file.string() + ".unfinished"),
        fd_(FileDescriptor::open(path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0666)) {
    if (!fd_) refuse("cannot be written", "check that its folder exists and that you can write to it");
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK)
      refuse("cannot be locked: " + std::generic_category().message(errno), "name a file on a local disk");
    // the lock is free, and no other copy has renamed the file since it was opened
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 || !is_still_at(fd_.get(), path_))
      refuse("is being written by another `trainyard db backup`", "wait for it to end, or name another file");
    if (::ftruncate(fd_.get(), 0) != 0) refuse("cannot be written", "name a regular file");
    for (const char* beside : {"-journal", "-wal", "-shm"}) ::unlink((path_.string() + beside).c_str());
  }
  ~UnfinishedFile() {
    if (!finished_) ::unlink(path_.c_str());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const fs::path& path() const { return path_; }

  void finish() {
    sync_file(path_);
    fs::rename(path_, file_);
    finished_ = true;
    sync_folder(fs::absolute(file_).parent_path());
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const char* advice) const {
    throw UserError(what, advice, {.file = file_.string()});
  }

  const fs::path file_, path_;
  const FileDescriptor fd_;
  bool finished_ = false;
};

// The file system type of the mount that contains `folder`, from /proc/self/mounts: "fuse.sshfs".
std::string mount_type(const fs::path& folder) {
  std::string text;  // as the kernel writes it
  for (const char c : folder.string() + "/")
    text += c == ' ' || c == '\t' || c == '\n' || c == '\\' ? fmt::format("\\{:03o}", c) : std::string(1, c);
  std::ifstream mounts("/proc/self/mounts");
  std::string device, place, type, rest, found;
  std::size_t longest = 0;
  while (mounts >> device >> place >> type && std::getline(mounts, rest)) {
    if ((place != "/" && !text.starts_with(place + "/")) || place.size() < longest) continue;
    longest = place.size();
    found = type;
  }
  return found;
}

}  // namespace

std::vector<std::string> damage(const Database& database) {
  using Lines = std::vector<std::string>;
  Lines found = read_all<Lines>(database, "PRAGMA integrity_check");
  if (found == Lines{"ok"}) found.clear();
  for (const std::string& table : read_all<Lines>(database, "SELECT \"table\" FROM pragma_foreign_key_check"))
    found.push_back("a row of " + table + " refers to a missing row");
  return found;
}

FileCheck check_files(const fs::path& yard, const Database* database) {
  Database rebuilt = Database::open_temporary();
  const Replay replayed = replay(yard, rebuilt, database);
  FileCheck found{replayed.problems, replayed.kept, {}};
  if (database)
    found.differences = translated(rebuilt.connection(), [&] {
      auto lines = differing_schema(rebuilt.connection(), true);
      return lines.empty() ? differing_rows(rebuilt.connection()) : lines;
    });
  return found;
}

Rebuild rebuild(const fs::path& yard) {
  refuse_network_file_system(yard);
  refuse_other_format(yard);
  const fs::path file = yard / file_name, fresh = with_suffix(file, ".rebuilt");
  remove_database(fresh);
  Rebuild result;
  {
    const auto old = usable_database(file, result.unused);
    Database database = Database::open_new(fresh);
    result.replayed = replay(yard, database, old ? &*old : nullptr);
  }  // closing it leaves no log beside it
  sync_file(fresh);
  const fs::path before = unused(with_suffix(file, ".before-rebuild"));
  replace(file, fresh, before);
  if (fs::exists(before)) result.kept = before;
  return result;
}

Database open_yard_for_writing(const fs::path& yard, const OnMessage& on_message) {
  refuse_network_file_system(yard);
  refuse_other_format(yard);
  Database database = open_or_rebuild(yard, on_message);
  const auto known = translated(database.connection(), [&] {
    return database.connection().execAndGet("SELECT COUNT(*) FROM journal").getInt64();
  });
  if (known == 0)
    replay(yard, database);
  else if (known < line_count(yard / "journal.jsonl"))
    replay_journal(yard, database);
  return database;
}

void refuse_other_format(const fs::path& yard) {
  const fs::path journal = yard / "journal.jsonl";
  if (!fs::exists(fs::symlink_status(journal))) return;
  const auto check = [&](const std::string& line, std::int64_t) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    const auto format = entry.is_object() ? entry.find("v") : entry.end();
    if (format == entry.end() || *format == experiments::format_version ||
        !experiments::seal_problem(line, entry, experiments::Seal::optional).empty())  // damage, not a format
      return false;
    throw UserError("has format " + format->dump() + ", but this program reads format " +
                        std::to_string(experiments::format_version),
                    "use the trainyard that made this yard, or name another yard with --yard",
                    {.file = yard.string()});
  };
  read_lines(journal, {longest_entry, check, [](const DamagedLine&) { return false; }});
}

// A copy is written as FILE.unfinished and renamed to FILE when it is complete. The file is locked meanwhile,
// so two copies to one FILE cannot mix. The kernel frees the lock of a killed copy, and the next one
// overwrites it.

void back_up(const Database& database, const fs::path& to) {
  refuse_existing(to);
  UnfinishedFile unfinished(to);  // not opened by SQLite, whose error would name the copied database
  refuse_existing(to);            // another copy may have ended just before this one began
  translated(database.connection(), [&] {
    // Without SQLite's own locks, which conflict with ours on some file systems.
    SQLite::Database copy(unfinished.path().string(), SQLite::OPEN_READWRITE, 0, "unix-none");
    copy.exec("PRAGMA journal_mode = OFF");  // it is useless until it is complete
    copy.exec("PRAGMA page_size = " + database.connection().execAndGet("PRAGMA page_size").getString());
    SQLite::Backup backup(copy, database.connection());
    if (backup.executeStep(-1) != SQLITE_DONE)  // SQLiteCpp does not throw if it waits for a lock
      throw SQLite::Exception("cannot be read now", SQLITE_BUSY);
  });
  unfinished.finish();
}

bool is_network_file_system(std::string_view type) {
  static constexpr std::array<std::string_view, 19> types{
      "nfs", "nfs4", "smb3",  "smbfs", "cifs",  "lustre",    "gpfs", "beegfs",  "ceph",  "ceph-fuse",
      "afs", "coda", "ocfs2", "panfs", "sshfs", "glusterfs", "s3fs", "gcsfuse", "rclone"};
  return std::ranges::find(types, type.substr(type.starts_with("fuse.") ? 5 : 0)) != types.end();
}

void refuse_network_file_system(const fs::path& folder) {
  std::error_code error;  // opening the database gives a better one
  const std::string type = mount_type(fs::weakly_canonical(fs::absolute(folder), error));
  if (!is_network_file_system(type)) return;
  throw UserError("is on " + type + ", a network file system that can damage a database",
                  "put the yard on a local disk with --yard or TRAINYARD_HOME", {.file = folder.string()});
}

}  // namespace trainyard::db
