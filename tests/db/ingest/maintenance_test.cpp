// Maintenance of a database: checks, copies, and rebuilding it from the files.
#include "db/ingest/maintenance.h"

#include <algorithm>
#include <fstream>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "db/database/page_checksums.h"
#include "db/database/schema.h"
#include "db/ingest/ingest.h"
#include "db/queries/queries.h"
#include "tests/db/support/live_yard.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

namespace {

// One finished run and one planned run, as files and in the database.
struct Small : LiveYard {
  experiments::Run done = make_run("mlp", 1, 0), planned = make_run("mlp", 1, 1);
  std::string key = experiments::run_key(done);

  Small() {
    journal(run_entry("sweep", {done, planned}, "2026-11-20T08:00:00.000Z"));
    LiveAttempt attempt(*this, done, 1, "2026-11-20T08:00:01.000Z");
    for (int number = 1; number <= 3; ++number) epoch(attempt, 0, number);
    end(attempt, 0, "finished");
    attempt.collect();
  }

  std::filesystem::path spool() const {
    return folder.path() / "runs" / key / "attempt-1" / experiments::rank_records_name(0);
  }
  void sql(const std::string& statement) const {
    SQLite::Database(folder / "results.db", SQLite::OPEN_READWRITE, 0, page_checksum_vfs()).exec(statement);
  }
};

std::vector<std::string> all_rows(const Database& database) {
  std::vector<std::string> rows;
  for (const std::string& name : names_of(database, "view"))
    for (const std::string& row : rows_of(database, "SELECT * FROM " + name)) rows.push_back(name + row);
  return rows;
}

}  // namespace

TEST_CASE("an intact database matches its files, and one that was edited differs table by table") {
  const Small yard;
  CHECK(damage(yard.live).empty());
  CHECK(check_files(yard.folder.path(), &yard.live).differences.empty());
  yard.sql("UPDATE metric SET sum = sum + 1 WHERE epoch = 2 AND name = 'correct' AND phase = 'train'");
  yard.sql("DELETE FROM epoch WHERE epoch = 3");
  CHECK(check_files(yard.folder.path(), &yard.live).differences ==
        std::vector<std::string>{"epoch: 1 rows are in the files only, 0 in the database only",
                                 "metric: 1 rows are in the files only, 1 in the database only"});
  CHECK_FALSE(std::filesystem::exists(yard.folder / "results.db.check"));
}

TEST_CASE("an unreadable line of the journal or of a spool is named, even without a database to compare") {
  Small yard;
  append_line(yard.folder / "journal.jsonl", "garbage\n{}\n");
  append_line(yard.spool(), "{\"v\":1,\n");
  const std::string journal = (yard.folder / "journal.jsonl").string();
  for (const Database* database : {&std::as_const(yard.live), static_cast<const Database*>(nullptr)}) {
    const FileCheck found = check_files(yard.folder.path(), database);
    CHECK(found.differences.empty());
    REQUIRE(found.unreadable.size() == 3);
    CHECK(found.unreadable[0] == journal + ":2: not JSON at byte 1");
    CHECK(found.unreadable[1].starts_with(journal + ":3: not a journal entry: "));
    CHECK(found.unreadable[2] == yard.spool().string() + ":6: not JSON at byte 8");
  }
}

TEST_CASE("a journal entry that is damaged after its ingestion is both a difference and an unreadable line") {
  Small yard;
  auto lines = tests::read_lines(yard.folder / "journal.jsonl");
  REQUIRE(lines.size() == 1);
  std::ofstream(yard.folder / "journal.jsonl") << "x" << lines[0].substr(1) << '\n';
  const FileCheck found = check_files(yard.folder.path(), &yard.live);
  CHECK(found.unreadable.size() == 1);
  CHECK(std::ranges::find(found.differences,
                          "experiment: 0 rows are in the files only, 1 in the database only") !=
        found.differences.end());
}

TEST_CASE("rows with dangling references are damage") {
  const Small yard;
  yard.sql("PRAGMA foreign_keys = OFF; DELETE FROM attempt");
  CHECK(contains(damage(yard.live).at(0), "refers to a missing row"));
}

TEST_CASE("a copy has everything that was committed, and does not replace an existing file") {
  Small yard;
  back_up(Database::open_read_only(yard.folder / "results.db"), yard.folder / "copy.db");
  CHECK(all_rows(Database::open_read_only(yard.folder / "copy.db")) == all_rows(yard.live));
  CHECK_THROWS_WITH_AS(back_up(yard.live, yard.folder / "none/copy.db"),
                       doctest::Contains("none/copy.db: cannot be written"), UserError);
  CHECK_THROWS_WITH_AS(back_up(yard.live, yard.folder / "copy.db"), doctest::Contains("already exists"),
                       UserError);
}

TEST_CASE("a second copy to the same file is refused meanwhile, and a killed copy's file is overwritten") {
  Small yard;
  const auto copy = yard.folder / "copy.db", unfinished = yard.folder / "copy.db.unfinished";
  std::ofstream(unfinished) << std::string(100'000, 'x');
  const int other = ::open(unfinished.c_str(), O_RDWR | O_CLOEXEC);  // like another copy that is running
  REQUIRE(::flock(other, LOCK_EX) == 0);
  CHECK_THROWS_WITH_AS(back_up(yard.live, copy),
                       doctest::Contains("copy.db: is being written by another `trainyard db backup`"),
                       UserError);
  CHECK(std::filesystem::file_size(unfinished) == 100'000);
  ::close(other);  // the other copy has ended
  back_up(yard.live, copy);
  CHECK(all_rows(Database::open_read_only(copy)) == all_rows(yard.live));
  CHECK_FALSE(std::filesystem::exists(unfinished));
}

TEST_CASE("a rebuilt database has equal views, and the old file is kept") {
  const Small yard;
  const auto before = all_rows(yard.live);
  std::ofstream(yard.folder / "results.db", std::ios::in | std::ios::out).seekp(100)
      << std::string(4000, 'x');
  const Replay result = rebuild(yard.folder.path()).replayed;
  CHECK(result.records == 5);
  CHECK(result.problems.empty());
  CHECK_FALSE(std::filesystem::exists(yard.folder / "results.db-wal"));
  CHECK(std::filesystem::exists(yard.folder / "results.db.before-rebuild"));
  CHECK(all_rows(Database::open_read_only(yard.folder / "results.db")) == before);
}

TEST_CASE("a missing database is rebuilt from the files when the yard is next opened") {
  Small yard;
  const auto before = all_rows(yard.live);
  for (const char* name : {"results.db", "results.db-wal", "results.db-shm"})
    std::filesystem::remove(yard.folder / name);
  CHECK(all_rows(open_yard_for_writing(yard.folder.path())) == before);
}

TEST_CASE("a journal entry that a killed writer did not ingest is ingested when the yard is next opened") {
  Small yard;
  append_line(yard.folder / "journal.jsonl",
              run_entry("later", {make_run("mlp", 1, 7)}, "2026-11-20T09:00:00.000Z").dump() + "\n");
  CHECK(experiment_names(yard.live) == std::vector<std::string>{"sweep"});
  CHECK(experiment_names(open_yard_for_writing(yard.folder.path())) ==
        std::vector<std::string>{"sweep", "later"});
}

TEST_CASE("a replay does not follow links in a yard") {
  const Small yard;
  const auto runs = yard.folder.path() / "runs";
  const TemporaryFolder elsewhere;
  std::filesystem::rename(runs / yard.key, elsewhere / "stolen");
  std::filesystem::create_directory_symlink(elsewhere / "stolen", runs / yard.key);
  Database again = Database::open_for_writing(elsewhere / "again.db");
  CHECK(replay(yard.folder.path(), again).records == 0);
}

namespace {

// Writes a database with the run and attempt tables of schema 1, one row in each, and a table that no longer
// exists.
void make_older(const std::filesystem::path& file, const std::string& run_key, int attempt) {
  std::filesystem::remove(file);
  SQLite::Database old(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  old.exec(R"sql(
    CREATE TABLE run (
      run_key TEXT PRIMARY KEY, model TEXT NOT NULL, dataset TEXT NOT NULL, data_source TEXT NOT NULL,
      strategy TEXT NOT NULL, strategy_kind TEXT NOT NULL, replicas INTEGER NOT NULL, stages INTEGER NOT NULL,
      seed INTEGER NOT NULL, epochs INTEGER NOT NULL, resolved TEXT NOT NULL, from_journal INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE attempt (
      run_key TEXT NOT NULL REFERENCES run (run_key) ON DELETE CASCADE, attempt INTEGER NOT NULL,
      experiment TEXT NOT NULL, directory TEXT NOT NULL, created TEXT NOT NULL, world_size INTEGER NOT NULL,
      host_exclusive INTEGER NOT NULL, devices_shared INTEGER NOT NULL,
      times_count INTEGER NOT NULL AS (host_exclusive AND NOT devices_shared),
      circumstances_hash TEXT NOT NULL, circumstances TEXT NOT NULL, host TEXT NOT NULL,
      processor TEXT NOT NULL, resumes_attempt INTEGER, resumes_after_epoch INTEGER, launch TEXT NOT NULL,
      PRIMARY KEY (run_key, attempt)
    ) STRICT;
    CREATE TABLE of_long_ago (x);
    PRAGMA user_version = 1;)sql");
  old.exec("PRAGMA application_id = " + std::to_string(application_id));
  old.exec("INSERT INTO run VALUES ('" + run_key +
           "', 'mlp', 'mnist', 'mnist', 'single', 'single', 1, 1, 0, 3, '{}', 1)");
  old.exec("INSERT INTO attempt VALUES ('" + run_key + "', " + std::to_string(attempt) +
           ", 'sweep', '/yard', '2026-11-20T08:00:01.000Z', 1, 1, 0, 'c', '{}', 'host', 'processor', NULL, "
           "NULL, '{}')");
}

}  // namespace

TEST_CASE("opening a database of an older schema for writing rebuilds it and keeps the old file") {
  Small yard;
  const auto before = all_rows(yard.live);
  const auto file = yard.folder / "results.db", kept = yard.folder / "results.db.schema-1";
  make_older(file, yard.key, 1);
  std::ofstream(kept) << "of an earlier time";
  const std::string old = tests::read_text(file);
  std::vector<std::string> told;
  const auto tell = [&](const std::string& line) { told.push_back(line); };
  CHECK(all_rows(open_yard_for_writing(yard.folder.path(), tell)) == before);
  CHECK(told ==
        std::vector<std::string>{file.string() + " had the older schema 1 and was rebuilt from 5 records. "
                                                 "The old file is kept as results.db.schema-1"});
  CHECK(tests::read_text(kept) == old);
  CHECK_FALSE(std::filesystem::exists(yard.folder / "results.db.rebuilt"));
  open_yard_for_writing(yard.folder.path(), tell);
  CHECK(told.size() == 1);
}

TEST_CASE("an older database is not replaced if the files lack one of its runs or attempts") {
  Small yard;
  const auto file = yard.folder / "results.db";
  const auto refused = [&](const std::string& run_key, int attempt) {
    make_older(file, run_key, attempt);
    const std::string old = tests::read_text(file);
    std::string text = tests::user_error_of([&] { open_yard_for_writing(yard.folder.path()); });
    CHECK(tests::read_text(file) == old);
    for (const char* name : {"results.db.schema-1", "results.db.rebuilt"})
      CHECK_FALSE(std::filesystem::exists(yard.folder / name));
    return text;
  };
  const std::string older = file.string() + ": has the older schema 1, and the yard has no files of its ";
  const std::string advice = "; restore the files, or leave it out with `trainyard db rebuild`";
  CHECK(refused("ba9876543210", 1) == older + "run ba9876543210 and 1 more" + advice);
  CHECK(refused(yard.key, 2) == older + "attempt 2 of run " + yard.key + advice);
}

TEST_CASE("an older database whose runs cannot be read is not replaced") {
  Small yard;
  const auto file = yard.folder / "results.db";
  make_older(file, yard.key, 1);
  SQLite::Database(file, SQLite::OPEN_READWRITE, 0, page_checksum_vfs())
      .exec("ALTER TABLE run RENAME TO runs");
  CHECK_THROWS_WITH_AS(
      open_yard_for_writing(yard.folder.path()),
      doctest::Contains("has the older schema 1, and its runs cannot be read (no such table: run)"),
      UserError);
  CHECK_FALSE(std::filesystem::exists(yard.folder / "results.db.schema-1"));
}

TEST_CASE("a database of a later release is never rebuilt") {
  Small yard;
  yard.sql("PRAGMA user_version = 99");
  CHECK_THROWS_WITH_AS(open_yard_for_writing(yard.folder.path()),
                       doctest::Contains("was written by a later trainyard (schema 99"), UserError);
  CHECK_FALSE(std::filesystem::exists(yard.folder / "results.db.schema-99"));
}

TEST_CASE("a removal names attempts, so a clock that was set back hides none and restores none") {
  Small yard;
  nlohmann::json removal = rm_entry({yard.key}, "2026-11-20T12:00:00.000Z");
  removal["attempts"] = {{yard.key, 1}};
  yard.journal(removal);
  yard.journal(run_entry("sweep", {yard.done}, "2026-11-20T08:30:00.000Z"));
  CHECK(yard.ingest.run_file(experiments::to_json(make_launch(yard.done, 1, "2026-11-20T13:00:00.000Z"))) ==
        Accepted::refused);
  LiveAttempt attempt(yard, yard.done, 2, "2026-11-20T07:00:00.000Z");  // the clock was set back
  for (int number = 1; number <= 3; ++number) epoch(attempt, 0, number);
  end(attempt, 0, "finished");
  attempt.collect();
  CHECK(keys_with_status(yard.live, "finished") == std::set<std::string>{yard.key});
  CHECK(check_files(yard.folder.path(), &yard.live).differences.empty());
}

TEST_CASE("network file systems are recognised by their numbers in the kernel's headers") {
  CHECK(network_file_system(0x6969) == "NFS");
  CHECK(network_file_system(0xFF534D42) == "CIFS");
  CHECK(network_file_system(0x0BD00BD0) == "Lustre");
  for (const unsigned long local : {0xEF53UL, 0x58465342UL, 0x9123683EUL, 0x01021994UL, 0x794C7630UL})
    CHECK(network_file_system(local).empty());  // ext4, XFS, Btrfs, tmpfs, overlayfs
  const TemporaryFolder folder;
  CHECK_NOTHROW(refuse_network_file_system(folder / "yard that is not there yet"));
}
