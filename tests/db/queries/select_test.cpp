#include <doctest/doctest.h>

#include "base/error.h"
#include "db/ingest/ingest.h"
#include "db/queries/queries.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;

namespace {

struct Filled {
  TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Filled() {
    Ingest ingest(database);
    ingest.journal_entry(run_entry("sweep", {make_run("mlp", 1, 0)}, "2026-11-20T09:00:00.000Z"));
  }
};

}  // namespace

TEST_CASE("a SELECT returns its columns and rows as null, integer, number and text") {
  const Filled filled;
  const ResultTable table = select(
      filled.database, "SELECT 1 AS one, 0.5 AS half, 'text' AS text, NULL AS none, x'0fa0' AS bytes;");
  CHECK(table.columns == std::vector<std::string>{"one", "half", "text", "none", "bytes"});
  CHECK(nlohmann::json(table.rows).dump() == R"([[1,0.5,"text",null,"X'0FA0'"]])");
}

TEST_CASE("statements that write, attach, change a setting or hold a transaction are refused") {
  const Filled filled;
  for (const std::string sql : {"DELETE FROM run",
                                "INSERT INTO removed VALUES ('a', 'b')",
                                "UPDATE run SET seed = 1",
                                "DROP TABLE run",
                                "CREATE TABLE t (x)",
                                "CREATE TEMP TABLE t (x)",
                                "ATTACH ':memory:' AS other",
                                "ATTACH '/tmp/other.db' AS other",
                                "DETACH main",
                                "PRAGMA user_version = 7",
                                "PRAGMA journal_mode = DELETE",
                                "PRAGMA query_only = OFF",
                                "PRAGMA writable_schema = ON",
                                "BEGIN",
                                "SAVEPOINT x",
                                "VACUUM",
                                "VACUUM INTO '/tmp/copy.db'",
                                "REINDEX",
                                "ANALYZE",

                                "WITH a AS (SELECT 1) DELETE FROM run",
                                "EXPLAIN DELETE FROM run",
                                "DELETE FROM run RETURNING *"}) {
    CAPTURE(sql);
    CHECK_THROWS_WITH_AS(select(filled.database, sql), doctest::Contains("only reads"), UserError);
  }
  CHECK_THROWS_AS(select(filled.database, "SELECT load_extension('x')"), UserError);
  CHECK(select(filled.database, "SELECT * FROM run").rows.size() == 1);
}

TEST_CASE("exactly one statement is allowed, besides comments and a final semicolon") {
  const Filled filled;
  CHECK(
      select(filled.database, "-- how many\nSELECT COUNT(*) FROM run; -- runs\n /* done */ ;").rows.size() ==
      1);
  CHECK_THROWS_WITH_AS(select(filled.database, "SELECT 1; SELECT 2"), doctest::Contains("more than one"),
                       UserError);
  CHECK_THROWS_WITH_AS(select(filled.database, "SELECT 1; DELETE FROM run"), doctest::Contains("only reads"),
                       UserError);
  CHECK_THROWS_WITH_AS(select(filled.database, " -- nothing\n"), doctest::Contains("no statement"),
                       UserError);
  CHECK_THROWS_WITH_AS(select(filled.database, ""), doctest::Contains("no statement"), UserError);
}

TEST_CASE("invalid SQL is an error with SQLite's message on one line") {
  const Filled filled;
  CHECK_THROWS_WITH_AS(select(filled.database, "SELCT 1"), doctest::Contains("near \"SELCT\": syntax error"),
                       UserError);
  CHECK_THROWS_WITH_AS(select(filled.database, "SELECT * FROM runs"),
                       doctest::Contains("no such table: runs"), UserError);
  try {
    select(filled.database, "SELECT \"a\nb\" FROM nowhere.\"c\nd\"");
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

TEST_CASE("the schema of the database can be queried") {
  const Filled filled;
  CHECK(select(filled.database, "PRAGMA table_info(run)").rows.size() == 13);
  CHECK(select(filled.database, "SELECT name FROM pragma_table_info('run_axis')").rows.size() == 3);
  CHECK(select(filled.database, "SELECT value FROM journal, json_each(varied)").rows.size() == 2);
  CHECK(!select(filled.database, "EXPLAIN QUERY PLAN SELECT * FROM run_summary").rows.empty());
}

TEST_CASE("invalid UTF-8 is returned as valid text") {
  const Filled filled;
  const ResultTable table = select(filled.database, "SELECT CAST(x'61ff62' AS TEXT)");
  CHECK(table.rows[0][0].get<std::string>() ==
        "a\xEF\xBF\xBD"
        "b");
}

TEST_CASE("the connection can write again after a refused statement") {
  Filled filled;
  CHECK_THROWS_AS(select(filled.database, "DELETE FROM run"), UserError);
  Ingest(filled.database)
      .journal_entry(run_entry("next", {make_run("mlp", 1, 9)}, "2026-11-20T10:00:00.000Z"));
  CHECK(experiment_names(filled.database).size() == 2);
}
