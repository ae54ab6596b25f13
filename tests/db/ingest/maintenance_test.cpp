// Maintenance of a database: checks, copies, and rebuilding it from the files.
#include "db/ingest/maintenance.h"

#include <fstream>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
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

  std::filesystem::path log() const {
    return folder.path() / "runs" / key / "attempt-1" / experiments::rank_records_name(0);
  }
  void sql(const std::string& statement) const {
    SQLite::Database(folder / "results.db", SQLite::OPEN_READWRITE).exec(statement);
  }
};

std::vector<std::string> all_rows(const Database& database) {
  std::vector<std::string> rows;
  for (const std::string& name : names_of(database, "view"))
    for (const std::string& row : rows_of(database, "SELECT * FROM " + name)) rows.push_back(name + row);
  return rows;
}

}  // namespace

TEST_CASE("an intact database matches its files, and rows that were edited are named by attempt") {
  const Small yard;
  CHECK(damage(yard.live).empty());
  CHECK(check_files(yard.folder.path(), &yard.live).differences.empty());
  yard.sql("UPDATE metric SET sum = sum + 1 WHERE epoch = 2 AND name = 'correct' AND phase = 'train'");
  yard.sql("DELETE FROM epoch WHERE epoch = 3");
  CHECK(
      check_files(yard.folder.path(), &yard.live).differences ==
      std::vector<std::string>{"attempt 1 of run " + yard.key +
                               ": the database has other rows of epoch, metric. A rebuild takes the files"});
}

TEST_CASE(
    "an unreadable line of the journal or of a record log is named, even without a database to compare") {
  Small yard;
  append_line(yard.folder / "journal.jsonl", "garbage\n{}\n");
  append_line(yard.log(), "{\"v\":1,\n");
  const std::string journal = (yard.folder / "journal.jsonl").string();
  for (const Database* database : {&std::as_const(yard.live), static_cast<const Database*>(nullptr)}) {
    const FileCheck found = check_files(yard.folder.path(), database);
    CHECK(found.differences.empty());
    REQUIRE(found.unreadable.size() == 3);
    CHECK(found.unreadable[0] == journal + ":2: not JSON at byte 1");
    CHECK(found.unreadable[1] == journal + ":3: has no checksum (crc)");
    CHECK(found.unreadable[2] == yard.log().string() + ":6: not JSON at byte 8");
  }
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
  append_line(
      yard.folder / "journal.jsonl",
      experiments::sealed(run_entry("later", {make_run("mlp", 1, 7)}, "2026-11-20T09:00:00.000Z").dump()) +
          "\n");
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

TEST_CASE("opening a database of another schema for writing rebuilds it and keeps the old file") {
  for (const char* schema : {"1", "99"}) {
    Small yard;
    const auto before = all_rows(yard.live);
    yard.sql(std::string("PRAGMA user_version = ") + schema);
    std::vector<std::string> reported;
    const auto on_message = [&](const std::string& line) { reported.push_back(line); };
    CHECK(all_rows(open_yard_for_writing(yard.folder.path(), on_message)) == before);
    CHECK(reported ==
          std::vector<std::string>{(yard.folder / "results.db").string() +
                                   " had another schema and was rebuilt from 5 records. The old file "
                                   "is kept as results.db.before-rebuild"});
    CHECK(std::filesystem::exists(yard.folder / "results.db.before-rebuild"));
    CHECK_FALSE(std::filesystem::exists(yard.folder / "results.db.rebuilt"));
    open_yard_for_writing(yard.folder.path(), on_message);
    CHECK(reported.size() == 1);
  }
}

TEST_CASE("a yard of another format is refused, and a damaged number is damage") {
  Small yard;
  const auto journal = yard.folder / "journal.jsonl";
  auto entry = nlohmann::json::parse(tests::read_lines(journal).at(0));
  entry.erase("crc");
  entry["v"] = 2;
  const std::string other = experiments::sealed(entry.dump());
  std::ofstream(journal) << other << '\n';
  const std::string error = yard.folder.path().string() +
                            ": has format 2, but this program reads format 1; use the trainyard that made "
                            "this yard, or name another yard with --yard";
  CHECK_THROWS_WITH_AS(open_yard_for_writing(yard.folder.path()), error.c_str(), UserError);
  CHECK_THROWS_WITH_AS(rebuild(yard.folder.path()), error.c_str(), UserError);
  std::string damaged = other;
  damaged[damaged.find("\"v\":2") + 4] = '3';
  std::ofstream(journal) << damaged << '\n';
  CHECK_NOTHROW(refuse_other_format(yard.folder.path()));
}

TEST_CASE("a removal names attempts, so a clock that was set back hides none and restores none") {
  Small yard;
  const nlohmann::json removal = rm_entry({yard.key}, "2026-11-20T12:00:00.000Z");
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

TEST_CASE("network file systems are recognised by the types of their mounts") {
  for (const char* network : {"nfs", "nfs4", "cifs", "lustre", "ceph", "fuse.sshfs", "fuse.ceph-fuse"})
    CHECK_MESSAGE(is_network_file_system(network), network);
  for (const char* local : {"", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "9p", "fuse.ntfs-3g", "fuseblk"})
    CHECK_MESSAGE(!is_network_file_system(local), local);
  const TemporaryFolder folder;
  CHECK_NOTHROW(refuse_network_file_system(folder / "yard that is not there yet"));
}
