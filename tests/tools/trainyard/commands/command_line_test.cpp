// Unusual arguments, paths and streams: errors name the fault, and no data is lost.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
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
  std::string text_of(const char* file) const {
    std::ifstream in(folder / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
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
  const Outcome full = trainyard_says("list models 3>&1 >/dev/full 2>&3 #");
  CHECK(full.code == 1);
  CHECK(contains(full.out, "trainyard: standard output: No space left on device"));
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
  const Outcome again = shell_says(full + " new --force '" + file + "'");
  CHECK(again.code == 2);
  CHECK(contains(again.out, "first.toml cannot be written: File too large"));
  CHECK(yard.text_of("first.toml") == before);
  CHECK(shell_says(full + " new '" + file + ".2'").code == 2);
  CHECK(!std::filesystem::exists(file + ".2"));
}

TEST_CASE("an empty key is not a run, even in a yard with only one run") {
  const OneRun yard;
  for (const std::string verb : {"rm", "show", "logs"}) {
    const Outcome said = yard.asks(verb + " ''");
    CHECK_MESSAGE(said.code == 2, verb);
    CHECK_MESSAGE(contains(said.out, "the run key is empty"), said.out);
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
    CHECK_MESSAGE(contains(trainyard_says(option).out, "is empty; name a path"), option);
}

TEST_CASE("a data directory whose name is not UTF-8 is refused before any file is created") {
  const TemporaryFolder folder;
  const std::string file = (folder / "first.toml").string(), yard = (folder / "yard").string();
  REQUIRE(trainyard_says("new '" + file + "'").code == 0);
  const std::string run = "run '" + file + "' --yard '" + yard + "'", directory = "\"$(printf 'd\\377')\" ";
  const Outcome asked = trainyard_says(run + " --data " + directory);
  CHECK(asked.code == 2);
  CHECK_MESSAGE(contains(asked.out, "the path d\\xff is not UTF-8"), asked.out);
  CHECK(shell_says("TRAINYARD_DATA=" + directory + TRAINYARD_PROGRAM + " " + run).code == 2);
  CHECK(!std::filesystem::exists(yard));
}
