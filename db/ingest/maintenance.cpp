#include "db/ingest/maintenance.h"

#include <fstream>

#include <SQLiteCpp/SQLiteCpp.h>

#include "base/durable_file.h"
#include "db/database/errors.h"
#include "db/ingest/file_system.h"
#include "db/ingest/replay.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

constexpr const char* file_name = "results.db";

fs::path with_suffix(fs::path file, const char* suffix) {
  file += suffix;
  return file;
}

// A database with what SQLite keeps beside it.
void remove_database(const fs::path& file) {
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(with_suffix(file, suffix));
}

std::vector<std::string> texts(const SQLite::Database& connection, const std::string& sql) {
  SQLite::Statement statement(connection, sql);
  std::vector<std::string> found;
  while (statement.executeStep()) found.push_back(statement.getColumn(0).getString());
  return found;
}

// Columns that both have; ids of the journal are numbers of our own and may differ.
std::string compared_columns(const SQLite::Database& connection, const std::string& table) {
  std::string columns;
  for (const std::string& column : texts(connection, "SELECT name FROM pragma_table_info('" + table + "')")) {
    const bool own_number = (table == "journal" && column == "id") || column.ends_with("journal_id");
    if (!own_number) columns += (columns.empty() ? "\"" : ", \"") + column + "\"";
  }
  return columns;
}

// Number of rows of `table` that are in `left` only.
std::int64_t only_in(SQLite::Database& connection, const std::string& left, const std::string& right,
                     const std::string& table) {
  const std::string columns = compared_columns(connection, table);
  return connection
      .execAndGet("SELECT COUNT(*) FROM (SELECT " + columns + " FROM " + left + ".\"" + table +
                  "\" EXCEPT SELECT " + columns + " FROM " + right + ".\"" + table + "\")")
      .getInt64();
}

std::int64_t lines_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::int64_t lines = 0;
  for (std::string line; std::getline(in, line);) lines += in.eof() || line.empty() ? 0 : 1;
  return lines;
}

}  // namespace

std::vector<std::string> damage(const Database& database) {
  return translated(database.connection(), [&] {
    std::vector<std::string> found = texts(database.connection(), "PRAGMA integrity_check");
    if (found == std::vector<std::string>{"ok"}) found.clear();
    for (const std::string& table :
         texts(database.connection(), "SELECT \"table\" FROM pragma_foreign_key_check"))
      found.push_back("a row of " + table + " refers to nothing");
    return found;
  });
}

namespace {

std::vector<std::string> differences(SQLite::Database& rebuilt, const Database& database) {
  SQLite::Statement attach(rebuilt, "ATTACH ? AS held");
  attach.bind(1, database.connection().getFilename());
  attach.exec();
  std::vector<std::string> found;
  for (const std::string& table : texts(rebuilt,
                                        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name "
                                        "NOT LIKE 'sqlite_%' ORDER BY name")) {
    const auto lacking = only_in(rebuilt, "main", "held", table);
    const auto extra = only_in(rebuilt, "held", "main", table);
    if (lacking + extra > 0)
      found.push_back(table + ": " + std::to_string(lacking) + " rows are in the files only, " +
                      std::to_string(extra) + " in the database only");
  }
  return found;
}

}  // namespace

FileCheck check_files(const fs::path& yard, const Database* database, Workplace workplace) {
  const fs::path again = with_suffix(yard / file_name, ".check");
  const bool in_yard = workplace == Workplace::yard;
  if (in_yard) remove_database(again);
  FileCheck found;
  {
    Database rebuilt = in_yard ? Database::open_new(again) : Database::open_temporary();
    found.unreadable = replay(yard, rebuilt).problems;
    if (database)
      found.differences =
          translated(rebuilt.connection(), [&] { return differences(rebuilt.connection(), *database); });
  }
  if (in_yard) remove_database(again);
  return found;
}

Replay rebuild(const fs::path& yard) {
  const fs::path file = yard / file_name;
  const fs::path fresh = with_suffix(file, ".rebuilt");
  const fs::path before = with_suffix(file, ".before-rebuild");
  refuse_network_file_system(yard);
  remove_database(fresh);
  Replay result;
  {
    Database database = Database::open_new(fresh);
    result = replay(yard, database);
  }  // closing it leaves no log beside it
  experiments::sync_file(fresh);
  // Killed between these: without a database the next sweep replays the files, with the old log gone it is
  // whole.
  remove_database(before);
  for (const char* suffix : {"-shm", "-wal", ""})
    if (fs::exists(with_suffix(file, suffix)))
      fs::rename(with_suffix(file, suffix), with_suffix(before, suffix));
  fs::rename(fresh, file);
  experiments::sync_folder(yard);
  return result;
}

Database open_yard_for_writing(const fs::path& yard) {
  refuse_network_file_system(yard);
  Database database = Database::open_for_writing(yard / file_name);
  const auto known = translated(database.connection(), [&] {
    return database.connection().execAndGet("SELECT COUNT(*) FROM journal").getInt64();
  });
  if (known == 0)
    replay(yard, database);
  else if (known < lines_of(yard / "journal.jsonl"))
    replay_journal(yard, database);
  return database;
}

}  // namespace trainyard::db
