#include "db/database/page_checksums.h"

#include <fstream>
#include <string>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>

#include "base/error.h"
#include "db/database/database.h"
#include "db/database/schema.h"
#include "db/ingest/maintenance.h"
#include "db/queries/select.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

namespace {

constexpr std::size_t page = 4096;

// Three finished runs in a file without a -wal file.
void fill_three(const std::filesystem::path& file) {
  Database database = Database::open_for_writing(file);
  Ingest ingest(database);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto run = make_run("mlp", 2, seed);
    ingest.journal_entry(run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z"));
    finish(ingest, run, make_launch(run), {3, 2, 1});
  }
}

// What is wrong with the file, or an empty text.
std::string problem(const std::filesystem::path& file) try {
  const Database database = Database::open_read_only(file);
  const auto found = damage(database);
  return found.empty() ? "" : found.front();
} catch (const UserError& error) {
  return error.what();
}

// Checks that a flip of each of these bits of the file is noticed: 0, `step`, 2 `step`, … below `end`.
void check_flips(const std::filesystem::path& file, std::size_t end, std::size_t step) {
  const std::string sound = tests::read_text(file);
  for (std::size_t bit = 0; bit < end; bit += step) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    tests::write_text(file, flipped);
    CAPTURE(bit);
    CHECK_FALSE(problem(file).empty());
  }
}

}  // namespace

TEST_CASE("a flipped bit anywhere in a database is noticed") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill_three(file);
  CHECK(problem(file).empty());
  const std::size_t size = std::filesystem::file_size(file);
  REQUIRE(size % page == 0);
  check_flips(file, 8 * size, 8 * 509 + 1);
}

TEST_CASE("a flipped bit anywhere in the header of a database is noticed") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill_three(file);
  check_flips(file, std::size_t{8} * 100, 1);
}

TEST_CASE("a query of a damaged database fails, and the error names the rebuild") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill_three(file);
  const std::string sound = tests::read_text(file);
  int failed = 0;
  for (std::size_t place = 300; place < sound.size(); place += page) {
    std::string flipped = sound;
    flipped[place] = static_cast<char>(flipped[place] ^ 4);
    tests::write_text(file, flipped);
    try {
      const auto rows = rows_of(Database::open_read_only(file), "SELECT * FROM final_metrics");
      CHECK(rows.size() == 3);
    } catch (const UserError& error) {
      ++failed;
      const std::string said = error.what();
      CHECK_MESSAGE(contains(said, "`trainyard db rebuild`"), said);
    }
  }
  CHECK(failed > 5);
}

TEST_CASE("a zeroed page, and a page in the place of another one, are noticed") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  fill_three(file);
  const std::string sound = tests::read_text(file);
  std::string zeroed = sound;
  zeroed.replace(5 * page, page, page, '\0');
  tests::write_text(file, zeroed);
  CHECK_FALSE(problem(file).empty());
  std::string twice = sound;
  twice.replace(5 * page, page, sound.substr(6 * page, page));
  tests::write_text(file, twice);
  CHECK_FALSE(problem(file).empty());
}

TEST_CASE("a database without checksums is read and written, and stays without") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  {
    SQLite::Database plain(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    make_schema(plain);
  }
  fill_three(file);
  CHECK(problem(file).empty());
  CHECK_FALSE(has_page_checksums(Database::open_read_only(file).connection()));
  CHECK(rows_of(Database::open_read_only(file), "SELECT * FROM final_metrics").size() == 3);
  CHECK(has_page_checksums(Database::open_for_writing(folder / "other.db").connection()));
}

TEST_CASE("pages keep their checksums if a program without them closes the file last") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  Database::open_for_writing(file);
  {
    SQLite::Database plain(file, SQLite::OPEN_READWRITE);
    plain.execAndGet("SELECT COUNT(*) FROM run");
    fill_three(file);
  }
  CHECK(problem(file).empty());
}

TEST_CASE("a copy has checksums, also of pages that were only in the -wal file") {
  const TemporaryFolder folder;
  const auto file = folder / "results.db", copy = folder / "copy.db";
  Database database = Database::open_for_writing(file);
  Ingest ingest(database);
  const auto run = make_run("mlp", 1, 1);
  ingest.journal_entry(run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z"));
  finish(ingest, run, make_launch(run), {3, 2, 1});
  REQUIRE(std::filesystem::file_size(file.string() + "-wal") > 0);
  back_up(database, copy);
  CHECK(problem(copy).empty());
  CHECK(has_page_checksums(Database::open_read_only(copy).connection()));
  CHECK(rows_of(Database::open_read_only(copy), "SELECT * FROM final_metrics").size() == 1);
}

TEST_CASE("a copy that does not fit into SQLite's cache has checksums") {
  const TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  database.connection().exec(
      "CREATE TABLE large AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
      "SELECT i, zeroblob(3000) AS bytes FROM n");
  back_up(database, folder / "copy.db");
  CHECK(std::filesystem::file_size(folder / "copy.db") > 8'000'000);
  CHECK(problem(folder / "copy.db").empty());
}
