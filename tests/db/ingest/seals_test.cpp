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
  CHECK(check.kept == std::vector<std::string>{yard.journal_file().string() +
                                               " has 0 of 1 line. A rebuild keeps the rows of the database"});
  CHECK(check.differences.empty());
}

TEST_CASE("a flipped bit at any byte of run.json never becomes a result") {
  const Yard1 yard;
  flip_each_byte(yard.folder.path(), yard.attempt() / "run.json", 53);
}

TEST_CASE("an entry or run file without a seal is damage, and the rows of the database are kept") {
  const Yard1 yard;
  for (const fs::path& file : {yard.journal_file(), yard.attempt() / "run.json"}) {
    const std::string sound = tests::read_text(file);
    auto object = nlohmann::json::parse(sound);
    object.erase("crc");
    write(file, object.dump() + "\n");
    const FileCheck check = check_files(yard.folder.path(), &yard.live);
    REQUIRE(check.unreadable.size() == 1);
    CHECK(contains(check.unreadable[0], "has no checksum (crc)"));
    CHECK(check.kept.size() == 1);
    CHECK(check.differences.empty());
    write(file, sound);
  }
}

TEST_CASE("zeros at the end of a record file are damage") {
  const Yard1 yard;
  append_line(yard.records(), std::string(4096, '\0'));
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.unreadable ==
        std::vector<std::string>{yard.records().string() + ":7: zeros from byte 1 of the line on"});
  CHECK(check.kept.empty());
  CHECK(check.differences.empty());
}

TEST_CASE("the records after a line of zeros are read, as the orchestrator read them") {
  const Yard1 yard;
  const std::string sound = tests::read_text(yard.records());
  const std::size_t place = sound.find('\n') + 1;
  write(yard.records(), sound.substr(0, place) + std::string(10, '\0') + "\n" + sound.substr(place));
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.unreadable ==
        std::vector<std::string>{yard.records().string() + ":2: zeros from byte 1 of the line on"});
  CHECK(check.kept.empty());
  CHECK(check.differences.empty());
}

TEST_CASE("a missing, halved or replaced record file, or something else in its place, is damage") {
  const Yard1 yard;
  const std::string file = yard.records().string(), sound = tests::read_text(yard.records());
  const auto first_lines = [&](int count) {
    std::size_t end = 0;
    for (int line = 0; line < count; ++line) end = sound.find('\n', end) + 1;
    return sound.substr(0, end);
  };
  const std::map<std::string, std::pair<std::function<void()>, std::string>> damages{
      {"missing", {[] {}, " is missing and has 0 of 6 records"}},
      {"halved", {[&] { write(file, sound.substr(0, sound.size() / 2)); }, " of 6 records"}},
      {"cut between two lines", {[&] { write(file, first_lines(3)); }, " has 3 of 6 records"}},
      {"empty", {[&] { write(file, ""); }, " has 0 of 6 records"}},
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
    REQUIRE(check.kept.size() == 1);
    CHECK(check.kept[0].starts_with("attempt 1 of run " + yard.key + ": " + file));
    CHECK(check.kept[0].ends_with(" records. A rebuild keeps the rows of the database"));
    CHECK(check.differences.empty());
    const std::string all = check.kept[0] + (check.unreadable.empty() ? "" : check.unreadable[0]);
    CHECK_MESSAGE(contains(all, damage.second), all);
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
  CHECK(contains(check.unreadable[0], ":1: longer than 1 MiB"));
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 << 10);  // KiB
}

TEST_CASE("a line that is too long for a record is damage") {
  const Yard1 yard;
  append_line(yard.records(), std::string(std::size_t{17} << 20, 'x') + "\n");
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  REQUIRE(check.unreadable.size() == 1);
  CHECK(contains(check.unreadable[0], ":7: longer than 1 MiB"));
}

namespace {

// The results of the yard after a rebuild.
std::vector<std::string> rebuilt_results(const Yard1& yard) {
  rebuild(yard.folder.path());
  const Database rebuilt = Database::open_read_only(yard.folder / "results.db");
  CHECK(damage(rebuilt).empty());
  auto rows = rows_of(rebuilt, "SELECT * FROM run_summary");
  for (const auto& row : rows_of(rebuilt, "SELECT * FROM final_metrics")) rows.push_back(row);
  return rows;
}

std::vector<std::string> results(const Yard1& yard) {
  auto rows = rows_of(yard.live, "SELECT * FROM run_summary");
  for (const auto& row : rows_of(yard.live, "SELECT * FROM final_metrics")) rows.push_back(row);
  REQUIRE(rows.size() == 3);  // two runs and the metrics of one
  return rows;
}

}  // namespace

TEST_CASE("a rebuild keeps the rows of a finished run whose files are damaged or gone") {
  using Damage = std::function<void(const Yard1&)>;
  const std::map<std::string, Damage> damages{
      {"run.json", [](const Yard1& yard) { write(yard.attempt() / "run.json", "{}"); }},
      {"records",
       [](const Yard1& yard) { write(yard.records(), tests::read_text(yard.records()).substr(700)); }},
      {"the attempt", [](const Yard1& yard) { fs::remove_all(yard.attempt()); }},
      {"all runs", [](const Yard1& yard) { fs::remove_all(yard.folder / "runs"); }},
      {"the journal", [](const Yard1& yard) { write(yard.journal_file(), "x"); }},
      {"all files",
       [](const Yard1& yard) {
         fs::remove_all(yard.folder / "runs");
         fs::remove(yard.journal_file());
       }},
  };
  for (const auto& [name, damage] : damages) {
    CAPTURE(name);
    const Yard1 yard;
    const auto before = results(yard);
    damage(yard);
    CHECK_FALSE(check_files(yard.folder.path(), &yard.live).kept.empty());
    CHECK(rebuilt_results(yard) == before);
    CHECK(rebuilt_results(yard) == before);  // also of the rebuilt one
  }
}

TEST_CASE("a rebuild takes the files if they are whole, whatever was changed in the database") {
  for (const char* statement :
       {"UPDATE metric SET sum = sum + 1 WHERE epoch = 2", "DELETE FROM attempt",
        "UPDATE run SET resolved = replace(resolved, '\"seed\":1', '\"seed\":5')",
        "DELETE FROM experiment_run", "UPDATE run_final SET train_loss = 7",
        "PRAGMA foreign_keys = OFF; UPDATE journal SET id = 9; UPDATE journal_key SET journal_id = 9; UPDATE "
        "experiment SET journal_id = 9; UPDATE experiment_run SET first_journal_id = 9, latest_journal_id = "
        "9",
        "DROP VIEW run_summary; CREATE VIEW run_summary AS SELECT run_key, 1 AS seed FROM run"}) {
    CAPTURE(statement);
    const Yard1 yard;
    const auto before = results(yard);
    SQLite::Database(yard.folder / "results.db", SQLite::OPEN_READWRITE)
        .exec(std::string("PRAGMA foreign_keys = ON; ") + statement);
    const FileCheck check = check_files(yard.folder.path(), &yard.live);
    CHECK(check.kept.empty());
    CHECK_FALSE(check.differences.empty());
    CHECK(rebuilt_results(yard) == before);
  }
}

TEST_CASE("a rebuild takes the files if both sides are whole and have other values") {
  const Yard1 yard;
  std::string text;
  for (const std::string& line : tests::read_lines(yard.records()))  // sealed again, as by another program
    text += line.substr(0, line.rfind(",\"crc\"")) + "}\n";
  text.replace(text.find("\"sum\":9"), 7, "\"sum\":8");  // 8 of 10 predictions are correct
  write(yard.records(), text);
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.kept.empty());
  CHECK(check.differences.size() == 2);  // of the attempt, and of the run
  rebuild(yard.folder.path());
  CHECK(rows_of(Database::open_read_only(yard.folder / "results.db"),
                "SELECT test_accuracy FROM final_metrics") == std::vector<std::string>{"[0.8]"});
}

TEST_CASE("a removed run stays removed if its files or its entry in the journal are damaged") {
  for (const bool of_journal : {false, true}) {
    Yard1 yard;
    yard.journal(rm_entry({yard.key}, "2026-11-20T12:00:00.000Z"));
    if (of_journal)
      write(yard.journal_file(), tests::read_lines(yard.journal_file()).at(0) + "\n");
    else
      fs::remove(yard.records());
    rebuild(yard.folder.path());
    const Database rebuilt = Database::open_read_only(yard.folder / "results.db");
    CHECK(rows_of(rebuilt, "SELECT * FROM attempt").empty());
    CHECK(rows_of(rebuilt, "SELECT * FROM final_metrics").empty());
    CHECK(rows_of(rebuilt, "SELECT * FROM removed").size() == 1);
  }
}

TEST_CASE("no rows of a damaged database are kept, and the rebuild says why") {
  const Yard1 yard;
  fs::remove(yard.records());
  SQLite::Database(yard.folder / "results.db", SQLite::OPEN_READWRITE)
      .exec("PRAGMA foreign_keys = OFF; DELETE FROM run");
  const Rebuild made = rebuild(yard.folder.path());
  CHECK(contains(made.unused, "results.db is damaged: a row of "));
  CHECK(made.replayed.kept.empty());
  CHECK(rows_of(Database::open_read_only(yard.folder / "results.db"), "SELECT * FROM final_metrics").empty());
}

TEST_CASE("entries and records that only the files have are taken") {
  Yard1 yard;
  append_line(
      yard.journal_file(),
      experiments::sealed(run_entry("later", {make_run("mlp", 1, 7)}, "2026-11-20T09:00:00.000Z").dump()) +
          "\n");
  const FileCheck check = check_files(yard.folder.path(), &yard.live);
  CHECK(check.kept.empty());
  CHECK(std::ranges::find(check.differences,
                          "the journal: the database has other rows of experiment, experiment_run, journal, "
                          "journal_key. A rebuild takes the files") != check.differences.end());
  std::string text = tests::read_text(yard.journal_file());
  write(yard.journal_file(), "x" + text.substr(1));  // now each side has an entry that the other one lacks
  rebuild(yard.folder.path());
  CHECK(experiment_names(Database::open_read_only(yard.folder / "results.db")).size() == 2);
}

TEST_CASE("another record with a known number is a conflict, and the first one is kept") {
  Yard1 yard;
  RecordLog again(yard.done, 1, 0);
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
  RecordLog orchestrator(yard.done, 1, std::nullopt);  // its records have other times
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
