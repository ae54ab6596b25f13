// Damage of journal, run files and record files: it is named and skipped, and no wrong value is ever read.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "db/database/page_checksums.h"
#include "db/ingest/maintenance.h"
#include "tests/db/support/live_yard.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
namespace fs = std::filesystem;

namespace {

// One finished run of one rank with four epochs, and a planned run.
struct Yard1 : LiveYard {
  experiments::Run done = make_run("mlp", 1, 1, 4), planned = make_run("mlp", 1, 2, 4);
  std::string key = experiments::run_key(done);

  Yard1() {
    journal(run_entry("sweep", {done, planned}, "2026-11-20T08:00:00.000Z"));
    LiveAttempt attempt(*this, done, 1, "2026-11-20T08:00:01.000Z");
    attempt.orchestrator().append("leased", body({{"devices", {"cpu:0"}}}));
    for (int number = 1; number <= 4; ++number) epoch(attempt, 0, number);
    end(attempt, 0, "finished");
    attempt.collect();
  }

  fs::path journal_file() const { return folder / "journal.jsonl"; }
  fs::path attempt() const { return folder / "runs" / key / "attempt-1"; }
  fs::path records() const { return attempt() / "rank-0.records.jsonl"; }
};

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// The runs of the views, after a replay into an empty database.
std::vector<std::string> replayed_runs(const fs::path& yard, Replay& result) {
  Database database = Database::open_temporary();
  result = replay(yard, database);
  auto rows =
      rows_of(database, "SELECT run_key, seed, test_accuracy FROM run_summary WHERE status = 'finished'");
  for (const auto& row : rows_of(database, "SELECT run_key, name, json FROM axis_value")) rows.push_back(row);
  return rows;
}

// Flips one bit of each byte of `file`. Every replay gives the rows of the whole file, fewer rows, or names
// the damage.
void flip_each_byte(const fs::path& yard, const fs::path& file, std::size_t step) {
  Replay result;
  const auto whole = replayed_runs(yard, result);
  REQUIRE(result.problems.empty());
  const std::string sound = tests::read_text(file);
  for (std::size_t place = 0; place < sound.size(); place += step) {
    std::string flipped = sound;
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << (place % 8)));
    write(file, flipped);
    const auto rows = replayed_runs(yard, result);
    CAPTURE(place);
    for (const std::string& row : rows) CHECK(std::ranges::find(whole, row) != whole.end());
    // A flip of white space, or of the last newline, changes no value.
    if (result.problems.empty()) CHECK(rows.size() <= whole.size());
  }
  write(file, sound);
}

}  // namespace

TEST_CASE("a flipped bit at any byte of a journal line never becomes a result") {
  const Yard1 yard;
  flip_each_byte(yard.folder.path(), yard.journal_file(), 61);
  std::string text = tests::read_text(yard.journal_file());
  text[text.find("\"seed\":1") + 7] ^= 4;  // seed 5
  write(yard.journal_file(), text);
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  REQUIRE(check.unreadable.size() == 1);
  CHECK(contains(check.unreadable[0], "journal.jsonl:1: CRC is "));
  CHECK(check.rebuild_loses);
  REQUIRE_FALSE(check.beliefs.empty());
  CHECK(check.beliefs[0] ==
        yard.journal_file().string() + ": believe the database: the file lacks 1 line, or they are damaged");
}

TEST_CASE("a flipped bit at any byte of run.json never becomes a result") {
  const Yard1 yard;
  flip_each_byte(yard.folder.path(), yard.attempt() / "run.json", 53);
}

TEST_CASE("unsealed entries and run files of earlier releases load, are reported, and are checked by key") {
  const Yard1 yard;
  const auto without_seal = [](const fs::path& file, int indent) {
    auto object = nlohmann::json::parse(tests::read_text(file));
    object.erase("crc");
    write(file, object.dump(indent) + "\n");
  };
  without_seal(yard.journal_file(), -1);
  without_seal(yard.attempt() / "run.json", 2);
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.differences.empty());
  CHECK(check.unreadable.empty());
  CHECK(check.unsealed ==
        std::vector<std::string>{
            yard.journal_file().string() + ": 1 line has no checksum. The keys of their runs are right",
            "1 run file has no checksum. Their keys are right"});

  for (const fs::path& file : {yard.journal_file(), yard.attempt() / "run.json"}) {
    const std::string sound = tests::read_text(file);
    std::string text = sound;
    const std::string member = file == yard.journal_file() ? "\"seed\":1" : "\"seed\": 1";
    const auto place = text.rfind(member);  // in the work, after the axes
    text[place + member.size() - 1] ^= 4;   // seed 5
    write(file, text);
    const FileCheck damaged = check_files(yard.folder.path(), &yard.live);
    REQUIRE(damaged.unreadable.size() == 1);
    CHECK_MESSAGE(contains(damaged.unreadable[0], "has the "), damaged.unreadable[0]);
    CHECK_MESSAGE(contains(damaged.unreadable[0], "key "), damaged.unreadable[0]);
    CHECK(damaged.rebuild_loses);
    write(file, sound);
  }
}

TEST_CASE("zeros at the end of a record file are damage") {
  const Yard1 yard;
  append_line(yard.records(), std::string(4096, '\0'));
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.unreadable ==
        std::vector<std::string>{yard.records().string() + ":7: zeros from byte 1 of the line on"});
  CHECK(check.differences.empty());
  CHECK_FALSE(check.rebuild_loses);
}

TEST_CASE("the records after a line of zeros are read, as the orchestrator read them") {
  const Yard1 yard;
  const std::string sound = tests::read_text(yard.records());
  const std::size_t place = sound.find('\n') + 1;
  write(yard.records(), sound.substr(0, place) + std::string(10, '\0') + "\n" + sound.substr(place));
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.unreadable ==
        std::vector<std::string>{yard.records().string() + ":2: zeros from byte 1 of the line on"});
  CHECK(check.differences.empty());
  CHECK(check.beliefs.empty());
}

TEST_CASE("a missing, halved or replaced record file, or something else in its place, is damage") {
  const Yard1 yard;
  const std::string file = yard.records().string(), sound = tests::read_text(yard.records());
  const auto first_lines = [&](int count) {
    std::size_t end = 0;
    for (int line = 0; line < count; ++line) end = sound.find('\n', end) + 1;
    return sound.substr(0, end);
  };
  const std::string records = "6 records";
  const std::map<std::string, std::pair<std::function<void()>, std::string>> damages{
      {"missing", {[] {}, ": is missing, and the database has its " + records}},
      {"halved",
       {[&] { write(file, sound.substr(0, sound.size() / 2)); },
        " of the " + records + " that the database has"}},
      {"cut between two lines",
       {[&] { write(file, first_lines(3)); }, ": has 3 of the " + records + " that the database has"}},
      {"empty", {[&] { write(file, ""); }, ": has 0 of the " + records}},
      {"replaced",
       {[&] { write(file, tests::read_text(yard.attempt() / "orchestrator.records.jsonl")); },
        ":1: a record of another run, attempt or rank"}},
      {"a folder", {[&] { fs::create_directory(file); }, ": is a folder, not a plain file"}},
      {"a link", {[&] { fs::create_symlink("/dev/zero", file); }, ": is a link, which is not followed"}},
      {"a pipe", {[&] { ::mkfifo(file.c_str(), 0600); }, ": is not a plain file"}},
  };
  for (const auto& [name, damage] : damages) {
    CAPTURE(name);
    fs::remove_all(file);
    damage.first();
    const FileCheck check = check_files(yard.folder.path(), &yard.live);
    std::string all;
    for (const auto& line : check.unreadable) all += line + "\n";
    for (const auto& line : check.incomplete_files) all += line + "\n";
    CHECK_MESSAGE(contains(all, damage.second), all);
    CHECK(check.rebuild_loses);
    REQUIRE(check.beliefs.size() == 1);
    CHECK(check.beliefs[0] ==
          "attempt 1 of run " + yard.key + ": believe the database: its files lack records");
  }
}

TEST_CASE("a sparse record file of zeros is reported at once without growing memory") {
  const Yard1 yard;
  write(yard.records(), "");
  fs::resize_file(yard.records(), std::uintmax_t{1} << 36);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  ::getrusage(RUSAGE_SELF, &after);
  REQUIRE(check.unreadable.size() == 1);
  CHECK(contains(check.unreadable[0], ":1: zeros from byte 1 of the line on"));
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 << 10);  // KiB
}

TEST_CASE("a line that is too long for a record is damage") {
  const Yard1 yard;
  append_line(yard.records(), std::string(std::size_t{17} << 20, 'x') + "\n");
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  REQUIRE(check.unreadable.size() == 1);
  CHECK(contains(check.unreadable[0], ":7: longer than 16 MiB"));
}

TEST_CASE("the files are believed if the database was changed, and the rebuild is advised") {
  const Yard1 yard;
  const auto sql = [&](const char* statement) {
    SQLite::Database(yard.folder / "results.db", SQLite::OPEN_READWRITE, 0, page_checksum_vfs())
        .exec(statement);
  };
  sql("UPDATE metric SET sum = sum + 1 WHERE epoch = 2");
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.beliefs == std::vector<std::string>{"attempt 1 of run " + yard.key +
                                                  ": believe the files: their checksums are right"});
  CHECK(check.rebuild_helps);
  CHECK_FALSE(check.rebuild_loses);
  sql("UPDATE run SET resolved = replace(resolved, '\"seed\":1', '\"seed\":5')");
  const FileCheck work = check_files(yard.folder.path(), &yard.live);
  REQUIRE(work.beliefs.size() == 2);
  CHECK(work.beliefs[1] ==
        "run " + yard.key + ": believe the files: its work in the database does not have this key");
  CHECK_FALSE(work.rebuild_loses);
}

TEST_CASE("without checksums in the files no side is believed, and the rebuild is not advised") {
  const Yard1 yard;
  std::string unsealed;
  for (const std::string& line : tests::read_lines(yard.records()))
    unsealed += line.substr(0, line.rfind(",\"crc\"")) + "}\n";
  write(yard.records(), unsealed);
  CHECK(check_files(yard.folder.path(), &yard.live).unsealed ==
        std::vector<std::string>{"1 record file has no checksum"});
  auto lines = tests::read_lines(yard.records());
  lines[1].replace(lines[1].find("\"sum\":50"), 8, "\"sum\":51");
  unsealed.clear();
  for (const std::string& line : lines) unsealed += line + "\n";
  write(yard.records(), unsealed);
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.beliefs == std::vector<std::string>{"attempt 1 of run " + yard.key +
                                                  ": neither side is proven: its files have no checksums"});
  CHECK(check.rebuild_loses);
}

TEST_CASE("a database that lacks records, entries or attempts is rebuilt from the files") {
  Yard1 yard;
  append_line(
      yard.journal_file(),
      experiments::sealed(run_entry("later", {make_run("mlp", 1, 7)}, "2026-11-20T09:00:00.000Z").dump()) +
          "\n");
  SQLite::Database(yard.folder / "results.db", SQLite::OPEN_READWRITE, 0, page_checksum_vfs())
      .exec("PRAGMA foreign_keys = ON; DELETE FROM attempt");
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.rebuild_helps);
  CHECK_FALSE(check.rebuild_loses);
  REQUIRE_FALSE(check.beliefs.empty());
  CHECK(check.beliefs[0] == yard.journal_file().string() + ": believe the files: the database lacks 1 line");
}

TEST_CASE("another record with a known number is a conflict, and the first one is kept") {
  Yard1 yard;
  Spool again(yard.done, 1, 0);
  const auto record_of = [&](std::int64_t seq, const std::string& time) {
    again.seq = seq;
    auto record = again.next("end", end_body("failed", 1));
    record.time = time;
    return record;
  };
  const auto last = experiments::parse_line(tests::read_lines(yard.records()).back()).record;
  REQUIRE(last.has_value());
  CHECK(yard.ingest.record(*last) == Accepted::known);
  CHECK(yard.ingest.record(record_of(last->seq, "2026-11-21T00:00:00.000Z")) == Accepted::conflict);
  CHECK(yard.ingest.next_number(yard.key, 1, 0) == last->seq + 1);
  Spool orchestrator(yard.done, 1, std::nullopt);  // its records have other times
  CHECK(yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}})) == Accepted::conflict);
  CHECK(rows_of(yard.live, "SELECT status FROM attempt_status") ==
        std::vector<std::string>{"[\"finished\"]"});
}

TEST_CASE("each rebuild keeps the database before it") {
  const Yard1 yard;
  CHECK(rebuild(yard.folder.path()).kept == yard.folder / "results.db.before-rebuild");
  CHECK(rebuild(yard.folder.path()).kept == yard.folder / "results.db.before-rebuild-2");
  CHECK(fs::exists(yard.folder / "results.db.before-rebuild"));
}
