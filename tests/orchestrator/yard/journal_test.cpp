#include "orchestrator/yard/journal.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("a run entry has the whole file, its comparisons, and every run by key") {
  experiments::Experiment experiment;
  experiment.name = "bench";
  experiment.file = "bench.toml";
  experiment.toml = "name = \"bench\"\n";
  experiment.compare = {experiments::Compare{}};
  experiment.varied = {"strategy"};
  experiment.runs = {mlp_run("single", 1, 0), mlp_run("ddp", 2, 0)};
  const auto entry = run_entry(experiment);
  CHECK(entry.at("type") == "run");
  CHECK(entry.at("experiment") == "bench");
  CHECK(entry.at("toml") == "name = \"bench\"\n");
  CHECK(entry.at("varied") == nlohmann::json{"strategy"});
  REQUIRE(entry.at("keys").size() == 2);
  const std::string second = entry.at("keys")[1];
  CHECK(second == experiments::run_key(experiment.runs[1]));
  CHECK(entry.at("strategies").at(second) == "ddp");
  CHECK(experiments::run_from_json(entry.at("runs").at(second)) == experiment.runs[1]);
}

TEST_CASE("each entry is one sealed line, and half a line of a killed writer is moved away") {
  const TemporaryFolder folder;
  const auto journal = folder.path / "journal.jsonl";
  append_to_journal(journal, {{"n", 1}});
  std::ofstream(journal, std::ios::app) << R"({"n":)";
  append_to_journal(journal, {{"n", 2}});
  // The CRC-32C of {"n":1 and of {"n":2
  CHECK(tests::read_lines(journal) ==
        std::vector<std::string>{R"({"n":1,"crc":"fbd8009e"})", R"({"n":2,"crc":"e888f36a"})"});
  CHECK(tests::read_lines(folder.path / "journal.jsonl.damaged") == std::vector<std::string>{R"({"n":)"});
}

TEST_CASE("a last entry whose newline is missing is kept") {
  const TemporaryFolder folder;
  const auto journal = folder.path / "journal.jsonl";
  std::ofstream(journal) << R"({"n":1,"crc":"fbd8009e"})";
  append_to_journal(journal, {{"n", 2}});
  REQUIRE(tests::read_lines(journal).size() == 2);
  CHECK(tests::read_lines(journal)[0] == R"({"n":1,"crc":"fbd8009e"})");
}

TEST_CASE("on a full disk the journal keeps its bytes, and the error names the cause") {
  const TemporaryFolder folder;
  const auto journal = folder.path / "journal.jsonl";
  append_to_journal(journal, {{"n", 1}});
  const std::string before = text_of(journal);
  std::string error;
  {
    const tests::FileSizeLimit limit(before.size() + 10);
    errno = 0;  // a short write does not set it
    try {
      append_to_journal(journal, {{"n", 2}, {"text", std::string(100, 'x')}});
    } catch (const std::system_error& thrown) {
      error = thrown.what();
      CHECK(thrown.code() == std::errc::file_too_large);
    }
  }
  CHECK(error == "cannot append to " + journal.string() + ": File too large");
  CHECK(text_of(journal) == before);
}
