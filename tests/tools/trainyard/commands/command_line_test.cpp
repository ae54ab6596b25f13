// Unusual arguments, paths and streams: errors name the fault, and no data is lost.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <SQLiteCpp/Database.h>
#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"
#include "tests/tools/trainyard/commands/program_says.h"

using namespace trainyard;
using namespace trainyard::db::testing;
using namespace trainyard::tests;

namespace {

// A yard with one finished run.
struct OneRun {
  TemporaryFolder folder;
  experiments::Run run = make_run("mlp", 1, 0);
  OneRun() {
    db::Database database = db::Database::open_for_writing(folder / "results.db");
    db::Ingest ingest(database);
    ingest.journal_entry(run_entry("demo", {run}, "2026-11-20T08:00:00.000Z"));
    finish(ingest, run, make_launch(run), {1, 1, 1});
  }
  std::string text_of(const char* file) const { return read_text(folder / file); }
  Outcome asks(const std::string& arguments) const {
    return trainyard_says(arguments + " --yard '" + folder.path().string() + "'");
  }
};

}  // namespace

TEST_CASE("output to a closed standard output does not get into the files of the yard") {
  const OneRun yard;
  const std::string key = experiments::run_key(yard.run);
  const std::string place = " --yard '" + yard.folder.path().string() + "'";
  const Outcome said = trainyard_says("rm " + key + place + " >&- 2>&- #");
  CHECK(said.code == 0);
  for (const char* file : {"yard.lock", "journal.jsonl"})
    CHECK_MESSAGE(!contains(yard.text_of(file), "removed " + key), file);
}

TEST_CASE("output to a full disk is a failure") {
  checked(trainyard_says("list models 3>&1 >/dev/full 2>&3 #"), 1,
          "trainyard: standard output: No space left on device");
  CHECK(trainyard_says("list models >&- #").code == 0);
}

TEST_CASE("on a full disk results can be read, and an existing experiment file is not damaged") {
  const OneRun yard;
  const std::string full =
      std::string("trap '' XFSZ; ulimit -f 1; ") + TRAINYARD_PROGRAM;  // blocks of 512 bytes
  const std::string place = " --yard '" + yard.folder.path().string() + "'";
  const Outcome read =
      shell_says(full + " sql 'SELECT COUNT(*) AS runs FROM run_summary' --format csv" + place);
  CHECK_MESSAGE(read.code == 0, read.out);
  CHECK(read.out == "runs\n1\n");
  const std::string file = (yard.folder / "first.toml").string();
  REQUIRE(trainyard_says("new '" + file + "'").code == 0);
  const std::string before = yard.text_of("first.toml");
  checked(shell_says(full + " new --force '" + file + "'"), 1,
          "first.toml cannot be written: File too large");
  CHECK(yard.text_of("first.toml") == before);
  CHECK(shell_says(full + " new '" + file + ".2'").code == 1);
  CHECK(!std::filesystem::exists(file + ".2"));
}

TEST_CASE("a full disk is exit code 1, whatever a command writes to it") {
  const OneRun yard;
  const std::string full =
      std::string("ulimit -f 0; ") + TRAINYARD_PROGRAM;  // SIGXFSZ does not end trainyard
  const auto in_folder = [&](const char* name) { return "'" + (yard.folder / name).string() + "'"; };
  const std::string place = " --yard " + in_folder("");
  for (const std::string& command :
       {"export --out " + in_folder("out.csv") + place, "report --out " + in_folder("pages") + place,
        "db backup " + in_folder("copy.db") + place, "new " + in_folder("new.toml")}) {
    checked(shell_says(full + " " + command), 1, "(`ulimit -f`)");
  }
}

TEST_CASE("too few open files are refused before anything is done, with the limit") {
  const OneRun yard;
  checked(shell_says(std::string("ulimit -n 14; ") + TRAINYARD_PROGRAM + " status --yard '" +
                     yard.folder.path().string() + "'"),
          2, "may open only 14 files, but trainyard needs 64; raise the limit");
}

TEST_CASE("a query prints at most --max-rows rows, says so, and fails") {
  const OneRun yard;
  const std::string many =
      "sql 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'";
  for (const std::string format : {"csv", "json", "markdown", "table"}) {
    const auto said = checked(yard.asks(many + " --max-rows 3 --format " + format), 1,
                              "the answer has more than 3 rows, and only these are printed");
    CHECK(contains(said.out, "3"));
    CHECK_FALSE(contains(said.out, "4"));
  }
  CHECK(contains(yard.asks(many + " --format csv").out, "more than 100000 rows"));
  const std::string place = " --yard '" + yard.folder.path().string() + "'";
  CHECK(trainyard_says(many + place + " --max-rows 1000000000 --format csv | head -n 1 #").out == "i\n");
  CHECK(yard.asks("sql 'SELECT 1 AS i UNION SELECT 2' --max-rows 2 --format json").out ==
        "[\n  {\n    \"i\": 1\n  },\n  {\n    \"i\": 2\n  }\n]\n");
  CHECK(contains(yard.asks("sql 'SELECT zeroblob(100000000)'").out, "string or blob too big"));
}

TEST_CASE("a damaged value in the database is an error of the user, not of the program") {
  const OneRun yard;
  SQLite::Database file((yard.folder / "results.db").string(), SQLite::OPEN_READWRITE);
  for (const char* damage :
       {"UPDATE attempt SET launch = substr(launch, 3)", "UPDATE run SET resolved = substr(resolved, 3)"}) {
    file.exec(damage);
    bool seen = false;
    for (const std::string verb :
         {"status", "status --runs", "export", "export runs", "report", "show last"}) {
      const Outcome said = yard.asks(verb);
      CHECK_MESSAGE(!contains(said.out, "internal error"), verb << ": " << said.out);
      seen = seen || (said.code == 2 && contains(said.out, "`trainyard db"));
    }
    CHECK_MESSAGE(seen, damage);
  }
}

TEST_CASE("an empty key is not a run, even in a yard with only one run") {
  const OneRun yard;
  for (const std::string verb : {"rm", "show", "logs"}) {
    checked(yard.asks(verb + " ''"), 2, "the run key is empty");
  }
}

TEST_CASE("an unusable path is named in a user error") {
  const TemporaryFolder folder;
  const auto place = [&](const char* name) { return "'" + (folder / name).string() + "'"; };
  std::filesystem::create_symlink("two", folder / "one");
  std::filesystem::create_symlink("one", folder / "two");
  std::ofstream(folder / "file") << "text";
  const std::string circle = place("one"), inside = place("file");
  for (const std::string& wrong : {"new " + circle, "status --yard " + circle, "db rebuild --yard " + circle,
                                   "plan x.toml --yard " + circle, "data get mnist --data " + inside}) {
    const Outcome said = trainyard_says(wrong);
    CHECK_MESSAGE(said.code == 2, wrong << ": " << said.out);
    CHECK_MESSAGE(!contains(said.out, "filesystem error"), said.out);
  }
  CHECK(
      contains(trainyard_says("new " + circle).out, "Too many levels of symbolic links; name another path"));
  CHECK(contains(trainyard_says("new " + std::string(5000, 'a')).out, "File name too long"));
  for (const char* option : {"status --yard ''", "new ''", "check ''", "plan x.toml --data ''",
                             "export --out ''", "report --out ''", "db backup ''"})
    CHECK_MESSAGE(contains(trainyard_says(option).out, "is empty; give a value"), option);
}

TEST_CASE("a data directory whose name is not UTF-8 is refused before any file is created") {
  const TemporaryFolder folder;
  const std::string file = (folder / "first.toml").string(), yard = (folder / "yard").string();
  REQUIRE(trainyard_says("new '" + file + "'").code == 0);
  const std::string run = "run '" + file + "' --yard '" + yard + "'", directory = "\"$(printf 'd\\377')\" ";
  checked(trainyard_says(run + " --data " + directory), 2, "the path d\\xff is not UTF-8");
  CHECK(shell_says("TRAINYARD_DATA=" + directory + TRAINYARD_PROGRAM + " " + run).code == 2);
  CHECK(!std::filesystem::exists(yard));
}

TEST_CASE("of thousands of errors or warnings about a file, the first 20 and a count are printed") {
  const TemporaryFolder folder;
  const std::string file = (folder / "f.toml").string();
  const auto check = [&](const std::string& rest) {
    std::ofstream(file) << "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n" << rest;
    return trainyard_says("check --file-only '" + file + "'");
  };
  std::string unknown = "[defaults]\n", unused;
  for (int i = 0; i < 80'000; ++i) unknown += "k" + std::to_string(i) + " = 1\n";
  for (int i = 1; i <= 21; ++i) unused += "[[exclude]]\nseed = " + std::to_string(i) + "\n";
  const Outcome errors = check(unknown);
  CHECK(errors.code == 2);
  CHECK(std::ranges::count(errors.out, '\n') == 21);
  CHECK(contains(errors.out, "f.toml:24:1: error: \"k19\" is not a key of [defaults]"));
  CHECK_FALSE(contains(errors.out, "\"k20\""));
  CHECK_MESSAGE(contains(errors.out, "\nand 79980 more errors; correct these first, then check again\n"),
                errors.out);
  const Outcome warnings = check(unused);
  CHECK(warnings.code == 0);
  CHECK(std::ranges::count(warnings.out, '\n') == 22);  // with the line "ok, 1 run"
  CHECK_MESSAGE(contains(warnings.out, "\nand 1 more warning\n"), warnings.out);
}

TEST_CASE("the error for an unknown word of an option suggests the nearest one") {
  const OneRun yard;
  const auto refused = [&](const std::string& arguments, const std::string& error) {
    checked(yard.asks(arguments), 2, error);
  };
  refused("report --format pfd", "--format: there is no \"pfd\"; did you mean \"pdf\"?");
  refused("report --format svg,PNG", "--format: there is no \"PNG\"; did you mean \"png\"?");
  refused("compare --format jsn", "--format: there is no \"jsn\"; did you mean \"json\"?");
  refused("sql 'SELECT 1' --format xml",
          "--format: there is no \"xml\"; choose from table, csv, json, markdown");
  refused("export epoch", "there is no \"epoch\"; did you mean \"epochs\"?, and it is not FILE.py:FUNCTION");
  CHECK(contains(trainyard_says("list model").out, "there is no \"model\"; did you mean \"models\"?"));
}
