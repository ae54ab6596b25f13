#include "db/database/database.h"

#include <fstream>
#include <new>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "db/database/schema.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/queries.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
#include "tests/support/user_error.h"
#include "tests/support/without_rights.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

namespace {

void fill(const std::filesystem::path& file) {
  Database database = Database::open_for_writing(file);
  Ingest ingest(database);
  ingest.journal_entry(run_entry("sweep", {make_run("mlp", 1, 0)}, "2026-11-20T09:00:00.000Z"));
}

// SQLite has no more memory while this object lives.
class NoMoreMemory {
 public:
  NoMoreMemory() : before_(sqlite3_hard_heap_limit64(1)) {}
  ~NoMoreMemory() { sqlite3_hard_heap_limit64(before_); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  sqlite3_int64 before_;
};

}  // namespace

TEST_CASE("if SQLite has no more memory, it is not reported as a bug or as a damaged database") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill(file);
  const Database database = Database::open_read_only(file);
  const NoMoreMemory limit;
  CHECK_THROWS_AS(experiment_names(database), std::bad_alloc);
  CHECK_THROWS_AS(Database::open_read_only(file), std::bad_alloc);
}

TEST_CASE("a new database is in WAL mode, synchronous FULL, with foreign keys and a version") {
  const TemporaryFolder folder;
  const Database database = Database::open_for_writing(folder / "results.db");
  SQLite::Database& connection = database.connection();
  CHECK(connection.execAndGet("PRAGMA journal_mode").getString() == "wal");
  CHECK(connection.execAndGet("PRAGMA synchronous").getInt() == 2);
  CHECK(connection.execAndGet("PRAGMA foreign_keys").getInt() == 1);
  CHECK(connection.execAndGet("PRAGMA user_version").getInt() == schema_version);
}

TEST_CASE("opening a database of another schema fails with both versions and does not change the file") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill(file);
  for (const int version : {-1, 0, schema_version - 1, schema_version + 1}) {
    CAPTURE(version);
    SQLite::Database(file, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = " + std::to_string(version));
    for (const auto& error : {tests::user_error_of([&] { Database::open_for_writing(file); }),
                              tests::user_error_of([&] { Database::open_read_only(file); })}) {
      CHECK_MESSAGE(error.starts_with(file.string() + ": has schema " + std::to_string(version) +
                                      " (this program needs " + std::to_string(schema_version) + "); "),
                    error);
      CHECK(contains(error, "`trainyard db rebuild` rebuilds it from the yard's files"));
    }
    SQLite::Database left(file);
    CHECK(left.execAndGet("PRAGMA user_version").getInt() == version);
    CHECK(left.execAndGet("SELECT COUNT(*) FROM run_summary").getInt() == 1);
  }
}

TEST_CASE("a read-only database is not opened for writing, whatever its schema is") {
  const TemporaryFolder folder;
  const auto yard = folder / "yard";
  std::filesystem::create_directory(yard);
  fill(yard / "results.db");
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(yard.c_str(), 0777);
  ::chmod((yard / "results.db").c_str(), 0444);
  for (const int version : {schema_version, 1}) {
    SQLite::Database(yard / "results.db", SQLite::OPEN_READWRITE)
        .exec("PRAGMA user_version = " + std::to_string(version));
    const WithoutRights nobody;
    CHECK_THROWS_WITH_AS(Database::open_for_writing(yard / "results.db"),
                         doctest::Contains("check that the file and its folder can be read and written"),
                         UserError);
  }
}

TEST_CASE("a database whose schema cannot be read is refused, and the error names `db rebuild`") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill(file);
  std::ofstream(file, std::ios::in | std::ios::out).seekp(100) << std::string(3000, 'x');  // its first page
  for (const auto& error : {tests::user_error_of([&] { Database::open_for_writing(file); }),
                            tests::user_error_of([&] { Database::open_read_only(file); })}) {
    CHECK_MESSAGE(error.starts_with(file.string() + ": is damaged: "), error);
    CHECK(contains(error, "`trainyard db rebuild` rebuilds it from the journal"));
  }
}

TEST_CASE("another program may write to the database after its writer was killed, and it stays intact") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill(file);
  const pid_t writer = ::fork();
  if (writer == 0) {
    Database database = Database::open_for_writing(file);
    Ingest(database).journal_entry(run_entry("later", {make_run("mlp", 1, 1)}, "2026-11-20T10:00:00.000Z"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(std::filesystem::file_size(file.string() + "-wal") > 0);  // the entry is only there
  SQLite::Database(file, SQLite::OPEN_READWRITE).exec("CREATE TABLE notes (text); PRAGMA wal_checkpoint");
  const Database reader = Database::open_read_only(file);
  CHECK(damage(reader).empty());
  CHECK(experiment_names(reader) == std::vector<std::string>{"sweep", "later"});
}

TEST_CASE("a missing database is an error that names the file and does not create it") {
  const TemporaryFolder folder;
  const std::string error = tests::user_error_of([&] { Database::open_read_only(folder / "results.db"); });
  CHECK(contains(error, (folder / "results.db").string()));
  CHECK(contains(error, "trainyard run"));
  CHECK(!std::filesystem::exists(folder / "results.db"));
}

TEST_CASE("a file that is not a database is refused and not changed") {
  const TemporaryFolder folder;
  const std::string text =
      "this is a letter, not a database, and long enough to have a header of 100 bytes: " +
      std::string(100, '.');
  std::ofstream(folder / "letter.db") << text;
  CHECK(contains(tests::user_error_of([&] { Database::open_read_only(folder / "letter.db"); }),
                 "is not a database"));
  CHECK(contains(tests::user_error_of([&] { Database::open_for_writing(folder / "letter.db"); }),
                 "is not a database"));
  CHECK(std::filesystem::file_size(folder / "letter.db") == text.size());
}

TEST_CASE("another program's database is refused and not changed") {
  const TemporaryFolder folder;
  SQLite::Database(folder / "foreign.db", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE t (x)");
  CHECK(contains(tests::user_error_of([&] { Database::open_read_only(folder / "foreign.db"); }),
                 "not written by trainyard"));
  CHECK(contains(tests::user_error_of([&] { Database::open_for_writing(folder / "foreign.db"); }),
                 "not written by trainyard"));
  SQLite::Database again(folder / "foreign.db");
  CHECK(again.execAndGet("SELECT COUNT(*) FROM sqlite_schema").getInt() == 1);
}

TEST_CASE("an empty file is not a database for readers, and a writer turns it into one") {
  const TemporaryFolder folder;
  std::ofstream(folder / "results.db").close();
  CHECK(contains(tests::user_error_of([&] { Database::open_read_only(folder / "results.db"); }), "is empty"));
  Database::open_for_writing(folder / "results.db");
  CHECK(experiment_names(Database::open_read_only(folder / "results.db")).empty());
}

TEST_CASE("opening for writing in a missing folder is a user error") {
  const TemporaryFolder folder;
  CHECK(contains(tests::user_error_of([&] { Database::open_for_writing(folder / "nowhere" / "results.db"); }),
                 "cannot open"));
}

TEST_CASE("a reader sees committed data while the writer's next transaction is open") {
  const TemporaryFolder folder;
  Database writer = Database::open_for_writing(folder / "results.db");
  Ingest ingest(writer);
  ingest.journal_entry(run_entry("first", {make_run("mlp", 1, 0)}, "2026-11-20T09:00:00.000Z"));
  writer.transaction([&] {
    ingest.journal_entry(run_entry("second", {make_run("mlp", 1, 1)}, "2026-11-20T09:01:00.000Z"));
    CHECK(experiment_names(Database::open_read_only(folder / "results.db")) ==
          std::vector<std::string>{"first"});
  });
  CHECK(experiment_names(Database::open_read_only(folder / "results.db")).size() == 2);
}

TEST_CASE("within one transaction a reader sees one snapshot, whatever a writer commits meanwhile") {
  const TemporaryFolder folder;
  Database writer = Database::open_for_writing(folder / "results.db");
  Ingest ingest(writer);
  Database reader = Database::open_read_only(folder / "results.db");
  reader.transaction([&] {
    CHECK(experiment_names(reader).empty());
    ingest.journal_entry(run_entry("first", {make_run("mlp", 1, 0)}, "2026-11-20T09:00:00.000Z"));
    CHECK(experiment_names(reader).empty());
  });
  CHECK(experiment_names(reader).size() == 1);
}

TEST_CASE("a read-only connection cannot write") {
  const TemporaryFolder folder;
  fill(folder / "results.db");
  const Database reader = Database::open_read_only(folder / "results.db");
  CHECK_THROWS_AS(reader.connection().exec("DELETE FROM run"), SQLite::Exception);
}

TEST_CASE("a database in a read-only folder is readable, even with # and % in its path") {
  const TemporaryFolder folder;
  const auto yard = folder / "a yard #1 50%25?";
  std::filesystem::create_directory(yard);
  fill(yard / "results.db");
  REQUIRE(!std::filesystem::exists(yard / "results.db-wal"));
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(yard.c_str(), 0555);
  {
    const WithoutRights nobody;
    CHECK(experiment_names(Database::open_read_only(yard / "results.db")) ==
          std::vector<std::string>{"sweep"});
  }
  ::chmod(yard.c_str(), 0755);
}

TEST_CASE("transactions in the -wal file of a killed writer are never silently omitted") {
  const TemporaryFolder folder;
  const auto yard = folder / "yard";
  const auto copy = folder / "copy";
  std::filesystem::create_directory(yard);
  std::filesystem::create_directory(copy);
  {
    const Database writer = Database::open_for_writing(yard / "results.db");
    Database another = Database::open_for_writing(yard / "results.db");
    Ingest(another).journal_entry(run_entry("sweep", {make_run("mlp", 1, 0)}, "2026-11-20T09:00:00.000Z"));
    for (const char* name : {"results.db", "results.db-wal"})
      std::filesystem::copy_file(yard / name, copy / name);  // as after a SIGKILL, but without the -shm file
  }
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(copy.c_str(), 0555);
  {
    const WithoutRights nobody;
    CHECK(contains(tests::user_error_of([&] { Database::open_read_only(copy / "results.db"); }), "-wal"));
  }
  ::chmod(copy.c_str(), 0755);
  CHECK(experiment_names(Database::open_read_only(copy / "results.db")) == std::vector<std::string>{"sweep"});
}

TEST_CASE("a transaction that throws changes nothing, and an inner one only undoes its own part") {
  const TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Ingest ingest(database);
  const auto plan = [&](const std::string& name, std::uint64_t seed) {
    ingest.journal_entry(run_entry(name, {make_run("mlp", 1, seed)}, "2026-11-20T09:00:00.000Z"));
  };
  CHECK_THROWS(database.transaction([&] {
    plan("first", 0);
    throw std::runtime_error("stop");
  }));
  CHECK(experiment_names(database).empty());
  database.transaction([&] {
    plan("outer", 1);
    CHECK_THROWS(database.transaction([&] {
      plan("inner", 2);
      throw std::runtime_error("stop");
    }));
  });
  CHECK(experiment_names(database) == std::vector<std::string>{"outer"});
}
