// Links and names that lead out of the yard. They are refused or ignored, and nothing outside is changed.
#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"
#include "orchestrator/plan/resume_point.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::orchestrator;
namespace fs = std::filesystem;

namespace {

// A folder outside the yard with files that must not change.
class Outside {
 public:
  explicit Outside(const fs::path& parent) : path(parent / "outside") {
    fs::create_directories(path / "attempt-1");
    std::ofstream(path / "precious") << "precious";
    std::ofstream(path / "attempt-1/precious") << "precious";
  }
  bool untouched() const {
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::recursive_directory_iterator(path)) ++entries;
    return entries == 3 && text_of(path / "precious") == "precious" &&
           text_of(path / "attempt-1/precious") == "precious";
  }
  const fs::path path;
};

// The folder of an attempt whose orchestrator was killed: it has a run file and no end.
fs::path interrupted_attempt(SweepFixture& bench) {
  bench.on_message("", "die");
  bench.sweep();
  fs::path folder = bench.attempt(0);
  bench.database = db::Database::open_for_writing(bench.yard.root() / "other.db");  // without the attempt
  fs::remove(folder / experiments::orchestrator_records_name);
  fs::remove(folder / experiments::rank_records_name(0));
  return folder;
}

}  // namespace

TEST_CASE("a yard is refused if its database, journal or lock is a link, dangling or not") {
  const TemporaryFolder folder;
  const Outside outside(folder.path);
  const Yard yard(folder.path / "yard");
  fs::create_directories(yard.root());
  for (const char* name : {"results.db", "results.db-wal", "results.db-shm", "journal.jsonl", "yard.lock"})
    for (const fs::path& target : {outside.path / "precious", outside.path / "made", outside.path}) {
      fs::create_symlink(target, yard.root() / name);
      CHECK_THROWS_WITH_AS(YardLock(yard, "a test"), doctest::Contains("is a link"), UserError);
      fs::remove(yard.root() / name);
    }
  CHECK(outside.untouched());
}

TEST_CASE("a relative link to the spool is resolved from the yard, not from the current folder") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path / "yard");
  fs::create_symlink("../spool/runs", folder.path / "yard/runs");
  CHECK(Yard(folder.path / "yard").runs() == folder.path / "spool/runs");
}

TEST_CASE("names of runs and experiments from a database never lead out of the yard") {
  const Yard yard("/tmp/yard");
  for (const char* name : {"", ".", "..", "../outside", "/etc", "a/../../b"}) {
    CHECK_THROWS_AS(yard.run(name), UserError);
    CHECK_THROWS_AS(yard.attempt(name, 1), UserError);
    CHECK_THROWS_AS(yard.report(name), UserError);
  }
  CHECK(yard.report("a..b") == "/tmp/yard/reports/a..b");
}

TEST_CASE("a run whose folder is a link is not trained there, and its checkpoints are not removed") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const Outside outside(bench.folder.path);
  fs::create_directories(bench.yard.runs());
  fs::create_directory_symlink(outside.path, bench.yard.run(bench.key(0)));
  fs::create_directories(outside.path / "checkpoints");
  CHECK_THROWS_WITH_AS(bench.sweep(), doctest::Contains("is a link"), UserError);
  remove_checkpoints(bench.yard, bench.key(0));
  CHECK(fs::remove(outside.path / "checkpoints"));
  CHECK(outside.untouched());
}

TEST_CASE("an attempt folder that is a link is skipped, and the next attempt has another number") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const Outside outside(bench.folder.path);
  fs::create_directories(bench.yard.run(bench.key(0)));
  fs::create_directory_symlink(outside.path / "attempt-1", bench.attempt(0));
  fs::create_directory_symlink(outside.path / "gone", bench.attempt(0, 2));
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 3) == "finished");
  CHECK(outside.untouched());
}

TEST_CASE("an interrupted attempt is not touched if its run file or records are a link or a pipe") {
  for (const char* name : {experiments::run_file_name, experiments::orchestrator_records_name})
    for (const bool pipe : {false, true}) {
      SweepFixture bench({mlp_run("single", 1, 0)});
      const Outside outside(bench.folder.path);
      const fs::path file = interrupted_attempt(bench) / name;
      const bool is_run_file = name == experiments::run_file_name;
      if (is_run_file) fs::rename(file, bench.folder.path / "run.json");
      if (pipe)
        REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
      else
        fs::create_symlink(is_run_file ? bench.folder.path / "run.json" : outside.path / "precious", file);
      bench.on_message("", "finish");
      CHECK(bench.sweep().finished == 1);  // as another attempt
      REQUIRE_FALSE(bench.status.messages.empty());
      CHECK(contains(bench.status.messages.front(), pipe ? "is not a plain file" : "is a link"));
      CHECK(outside.untouched());
    }
}

TEST_CASE("paths in a run file that lead out of the yard are not used") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const Outside outside(bench.folder.path);
  const fs::path file = interrupted_attempt(bench) / experiments::run_file_name;
  auto launch = nlohmann::json::parse(text_of(file));
  launch.erase("crc");
  launch["records"] = outside.path.string();
  launch["checkpoints"] = outside.path.string();
  launch["resumes_attempt"] = 1;
  launch["resumes_after_epoch"] = 1;
  std::ofstream(file) << experiments::sealed(launch.dump());
  bench.on_message("", "finish");
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 1) == "interrupted");
  CHECK(bench.status_of(0, 2) == "finished");
  CHECK(outside.untouched());
}

TEST_CASE("a progress file that is a link or a pipe is ignored without waiting") {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path / "pipe", link = folder.path / "link", real = folder.path / "real";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  experiments::ProgressWriter(real).write({});
  fs::create_symlink(real, link);
  CHECK(experiments::read_progress(real));
  CHECK_FALSE(experiments::read_progress(link));
  CHECK_FALSE(experiments::read_progress(pipe));
}
