// The database can be rebuilt from the files of the yard at any time.
#include <fstream>

#include <doctest/doctest.h>

#include "db/ingest/maintenance.h"
#include "db/queries/queries.h"
#include "tests/db/support/live_yard.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

void check_equal(const Database& a, const Database& b) {
  for (const char* type : {"view", "table"})
    for (const std::string& name : names_of(a, type)) {
      CAPTURE(name);
      CHECK(rows_of(a, "SELECT * FROM " + name) == rows_of(b, "SELECT * FROM " + name));
    }
}

// Two experiments that share a run. Their runs finish, fail, are interrupted, keep running, or are removed
// and planned again. One has more than nine attempts. All records are interleaved and collected in small
// pieces.
struct Busy : LiveYard {
  experiments::Run single = make_run("mlp", 1, 0), ddp = make_run("mlp", 2, 0),
                   broken = make_run("mlp", 2, 1), removed = make_run("mlp", 1, 2),
                   planned = make_run("mlp", 1, 3), foreign = make_run("cnn", 1, 0),
                   stubborn = make_run("mlp", 1, 4);

  Busy() {
    journal(run_entry("first", {single, ddp, broken, removed, stubborn}, "2026-11-20T08:00:00.000Z"));
    LiveAttempt one(*this, single, 1, "2026-11-20T08:00:01.000Z");
    LiveAttempt two(*this, ddp, 1, "2026-11-20T08:00:02.000Z");
    one.orchestrator().append("leased", body({{"devices", {"cpu:0"}}}));
    one.rank(0).append("start", body(start_body(0, 1)));
    two.rank(1).append("start", body(start_body(1, 2)));
    one.collect();
    LiveAttempt three(*this, broken, 1, "2026-11-20T08:00:03.000Z");
    for (int number = 1; number <= 3; ++number) {
      epoch(two, 1, number);
      two.collect();
      epoch(one, 0, number);
      epoch(two, 0, number);
      one.collect();
    }
    three.rank(0).append("checkpoint", body({{"step", 1}}));
    epoch(three, 0, 1);
    journal(run_entry("second", {ddp, planned}, "2026-11-20T08:10:00.000Z"));
    end(three, 1, "failed", "out of memory");
    three.collect();
    three.orchestrator().append("exited", body({{"of_rank", 0}, {"code", -1}, {"signal", 9}}));
    three.orchestrator().append(
        "cause",
        body({{"outcome", "failed"}, {"of_rank", 1}, {"error", "out of memory"}, {"log", "rank-1.log"}}));
    end(two, 0, "finished");
    end(two, 1, "finished");
    three.collect();
    two.collect();
    end(one, 0, "finished");
    one.collect();
    remove_and_come_back();
    interrupt();
    LiveAttempt alien(*this, foreign, 1, "2026-11-20T08:30:00.000Z");
    epoch(alien, 0, 1);
    alien.collect();
  }

  void remove_and_come_back() {
    LiveAttempt old(*this, removed, 1, "2026-11-20T08:11:00.000Z");
    epoch(old, 0, 1);
    old.collect();
    journal(rm_entry({experiments::run_key(removed)}, "2026-11-20T08:12:00.000Z"));
    journal(run_entry("second", {removed, ddp}, "2026-11-20T08:13:00.000Z"));
    LiveAttempt next(*this, removed, 2, "2026-11-20T08:14:00.000Z");
    epoch(next, 0, 1);
    epoch(next, 0, 2);
    next.collect();
  }

  void interrupt() {
    for (int number = 1; number <= 11; ++number) {
      LiveAttempt attempt(*this, stubborn, number,
                          "2026-11-20T08:20:" + std::to_string(10 + number) + ".000Z");
      epoch(attempt, 0, 1);
      if (number < 11)
        attempt.orchestrator().append("cause", body({{"outcome", "interrupted"}, {"error", "Ctrl-C"}}));
      attempt.collect();
    }
  }
};

}  // namespace

TEST_CASE("replaying a yard into an empty database gives equal views and tables") {
  const Busy yard;
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  const Replay first = replay(yard.folder.path(), rebuilt);
  CHECK(first.damaged_lines == 0);
  CHECK(first.damaged_files == 0);
  CHECK(first.problems.empty());
  CHECK(first.records > 40);
  check_equal(yard.live, rebuilt);
  std::map<std::string, int> statuses;
  for (const RunSummary& run : run_summaries(rebuilt)) ++statuses[run.status];
  CHECK(statuses ==
        std::map<std::string, int>{{"finished", 3}, {"failed", 1}, {"running", 4}, {"planned", 1}});
}

TEST_CASE("replaying again, or into the live database, changes nothing") {
  Busy yard;
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  replay(yard.folder.path(), rebuilt);
  replay(yard.folder.path(), yard.live);
  check_equal(yard.live, rebuilt);
  const Replay third = replay(yard.folder.path(), rebuilt);
  CHECK(third.damaged_lines == 0);
  check_equal(yard.live, rebuilt);
}

TEST_CASE("a replay continues where the previous one stopped") {
  Busy yard;
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  replay(yard.folder.path(), rebuilt);
  LiveAttempt more(yard, yard.planned, 1, "2026-11-20T08:40:00.000Z");
  epoch(more, 0, 1);
  more.collect();
  replay(yard.folder.path(), rebuilt);
  check_equal(yard.live, rebuilt);
}

TEST_CASE("a line without its newline is ignored, in spools and in the journal") {
  LiveYard yard;
  const auto run = make_run("mlp", 1, 0);
  yard.journal(run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z"));
  LiveAttempt attempt(yard, run, 1, "2026-11-20T08:00:01.000Z");
  epoch(attempt, 0, 1);
  const std::string line = tests::read_lines(attempt.file(0)).at(0);
  append_line(attempt.file(0), line.substr(0, line.size() / 2));
  append_line(yard.folder / "journal.jsonl", R"({"v":1,"type":"rm","keys":[")" + experiments::run_key(run));
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  const Replay result = replay(yard.folder.path(), rebuilt);
  CHECK(result.records == 1);
  CHECK(result.damaged_lines == 0);
  CHECK(run_summaries(rebuilt).size() == 1);
}

TEST_CASE("a damaged line is counted and named, and only its own record log ends there") {
  LiveYard yard;
  const auto run = make_run("mlp", 2, 0);
  yard.journal(run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z"));
  append_line(yard.folder / "journal.jsonl", "{\"type\":\"ru\n");
  LiveAttempt attempt(yard, run, 1, "2026-11-20T08:00:01.000Z");
  for (int number = 1; number <= 3; ++number)
    for (int rank = 0; rank < 2; ++rank) epoch(attempt, rank, number);
  auto lines = tests::read_lines(attempt.file(0));
  lines[1][40] ^= 1;  // flips one bit
  std::ofstream(attempt.file(0)) << lines[0] << '\n' << lines[1] << '\n' << lines[2] << '\n';
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  const Replay result = replay(yard.folder.path(), rebuilt);
  CHECK(result.damaged_lines == 2);
  CHECK(result.damaged_files == 1);
  REQUIRE(result.problems.size() == 3);
  CHECK(result.problems[0].find("journal.jsonl:2: ") != std::string::npos);
  CHECK(result.problems[1].find("rank-0.records.jsonl:2: ") != std::string::npos);
  CHECK(result.problems[2].find("rank-0.records.jsonl:3: ") != std::string::npos);
  CHECK(rows_of(rebuilt, "SELECT rank, COUNT(*) FROM epoch GROUP BY rank") ==
        std::vector<std::string>{"[0,1]", "[1,3]"});
  attempt.collect();  // the collector reads the same lines
  check_equal(yard.live, rebuilt);
}

TEST_CASE("a record log of another run, or without a run.json, is counted and omitted") {
  LiveYard yard;
  const auto run = make_run("mlp", 1, 0), other = make_run("mlp", 1, 1), bare = make_run("mlp", 1, 2);
  LiveAttempt attempt(yard, run, 1, "2026-11-20T08:00:01.000Z");
  epoch(attempt, 0, 1);
  const auto runs = yard.folder / "runs";
  std::filesystem::create_directories(runs / experiments::run_key(other));
  std::filesystem::copy(runs / experiments::run_key(run) / "attempt-1",
                        runs / experiments::run_key(other) / "attempt-1",
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directories(runs / experiments::run_key(bare) / "attempt-1");
  std::filesystem::copy_file(attempt.file(0),
                             runs / experiments::run_key(bare) / "attempt-1" / "rank-0.records.jsonl");
  std::filesystem::create_directories(runs / experiments::run_key(bare) /
                                      "attempt-2");  // the attempt died before its launch
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  const Replay result = replay(yard.folder.path(), rebuilt);
  CHECK(result.damaged_files == 2);
  CHECK(result.records == 1);
  CHECK(run_summaries(rebuilt).size() == 1);
}

TEST_CASE("records of another rank in a record log count as damaged lines") {
  LiveYard yard;
  const auto run = make_run("mlp", 2, 0);
  LiveAttempt attempt(yard, run, 1, "2026-11-20T08:00:01.000Z");
  epoch(attempt, 1, 1);
  append_line(attempt.file(0), tests::read_lines(attempt.file(1)).at(0) + "\n");
  Database rebuilt = Database::open_for_writing(yard.folder / "rebuilt.db");
  const Replay result = replay(yard.folder.path(), rebuilt);
  CHECK(result.damaged_lines == 1);
  CHECK(rows_of(rebuilt, "SELECT rank FROM epoch") == std::vector<std::string>{"[1]"});
}

TEST_CASE("a folder that is not a yard has nothing to replay") {
  const TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  const Replay result = replay(folder / "nowhere", database);
  CHECK(result.records == 0);
  CHECK(result.problems.empty());
}
