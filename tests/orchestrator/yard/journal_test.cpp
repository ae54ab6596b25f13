#include "orchestrator/yard/journal.h"

#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::istringstream stream(text_of(file));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

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
  CHECK(entry.at("final") == false);
  REQUIRE(entry.at("keys").size() == 2);
  const std::string second = entry.at("keys")[1];
  CHECK(second == experiments::run_key(experiment.runs[1]));
  CHECK(entry.at("strategies").at(second) == "ddp");
  CHECK(experiments::run_from_json(entry.at("runs").at(second)) == experiment.runs[1]);
}

TEST_CASE("each entry is one line, and an incomplete line of a killed writer is separate") {
  const TemporaryFolder folder;
  const auto journal = folder.path / "journal.jsonl";
  append_to_journal(journal, {{"n", 1}});
  std::ofstream(journal, std::ios::app) << R"({"n":)";
  append_to_journal(journal, {{"n", 2}});
  CHECK(lines_of(journal) == std::vector<std::string>{R"({"n":1})", R"({"n":)", R"({"n":2})"});
}
