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
  CHECK(select(filled.database, "PRAGMA table_info(run)").rows.size() == 15);
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

TEST_CASE("stddev and median of a query are those of NumPy and pandas") {
  const Filled filled;
  const auto number = [&](const std::string& function, const std::string& values) {
    return select(filled.database,
                  "SELECT " + function + "(x) FROM (SELECT NULL AS x UNION ALL VALUES " + values + ")")
        .rows.at(0)
        .at(0);
  };
  const std::string accuracies = "(0.9715), (0.9689), (0.9742), (0.9701), (0.9698)";
  // numpy.std(x, ddof=1) of NumPy 2.2.6 and pandas.Series(x).std() of pandas 2.3.3
  CHECK(number("stddev", accuracies).get<double>() == doctest::Approx(0.0020676073128135255).epsilon(1e-12));
  CHECK(number("stddev", "(1), (2), (3), (4)").get<double>() ==
        doctest::Approx(1.2909944487358056).epsilon(1e-12));
  CHECK(number("stddev", "(1000000004), (1000000007), (1000000013), (1000000016)").get<double>() ==
        doctest::Approx(5.477225575051661).epsilon(1e-12));
  CHECK(number("median", accuracies) == 0.9701);
  CHECK(number("median", "(0.9715), (0.9689), (0.9742), (0.9701)").get<double>() ==
        doctest::Approx(0.9708).epsilon(1e-12));
  CHECK(number("median", "(7)") == 7.0);
}

TEST_CASE("stddev is 0 for equal values and NULL for fewer than two, and a word is an error") {
  const Filled filled;
  const auto row = [&](const std::string& columns, const std::string& from) {
    return nlohmann::json(select(filled.database, "SELECT " + columns + from).rows).dump();
  };
  // Σx² - n·mean² is negative for three times 0.1, and its root is NULL.
  CHECK(row("stddev(column1)", " FROM (VALUES (0.1), (0.1), (0.1))") == "[[0.0]]");
  CHECK(row("stddev(column1), stddev(DISTINCT column1), median(column1)", " FROM (VALUES (0.7), (0.7))") ==
        "[[0.0,null,0.7]]");
  CHECK(row("stddev(column1), median(column1)", " FROM (VALUES (NULL), (NULL))") == "[[null,null]]");
  CHECK(row("stddev(seed), median(seed)", " FROM run WHERE seed < 0") == "[[null,null]]");
  CHECK(row("column1, stddev(column2)", " FROM (VALUES (1, 2), (1, 4), (2, 5)) GROUP BY 1") ==
        "[[1,1.4142135623730951],[2,null]]");
  CHECK(row("median(column1)", " FROM (VALUES ('0.5'), ('1.5'))") == "[[1.0]]");
  CHECK_THROWS_WITH_AS(select(filled.database, "SELECT stddev(model) FROM run"),
                       doctest::Contains("stddev and median need numbers"), UserError);
}
