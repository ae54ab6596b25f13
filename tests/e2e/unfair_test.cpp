// Sweeps that must not get a verdict, in every output: terminal, page, Markdown and `compare`.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

std::string cnn_file(const std::string& name, const std::string& more) {
  return "name = \"" + name + R"("
[matrix]
model = ["cnn"]
strategy = ["single", "ddp"]
seed = { count = 2 }
[defaults]
dataset = "synthetic-digits"
train_samples = 300
epochs = 2
batch = 50
)" + more;
}

// All verdicts of `compare --format json`.
nlohmann::json verdicts_of(const nlohmann::json& said) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& comparison : said.at("comparisons"))
    for (const auto& verdict : comparison.at("verdicts")) all.push_back(verdict);
  return all;
}

nlohmann::json json_of(const Output& output) {
  REQUIRE_MESSAGE(output.code == 0, output.err);
  return nlohmann::json::parse(output.out);
}

}  // namespace

#ifdef TRAINYARD_UNSYNCHRONISED_RUNNER
TEST_CASE("an arm with unsynchronised gradients is BROKEN in every output, with the layer") {
  const Scratch scratch;
  const std::filesystem::path built = std::filesystem::path(TRAINYARD_PROGRAM).parent_path();
  const auto programs = scratch.path() / "programs";
  std::filesystem::create_directory(programs);
  std::filesystem::copy_file(TRAINYARD_PROGRAM, programs / "trainyard");
  std::filesystem::copy_file(built / "trainyard-store", programs / "trainyard-store");
  std::filesystem::copy_file(TRAINYARD_UNSYNCHRONISED_RUNNER, programs / "trainyard-runner");
  const auto at = [&](const std::vector<std::string>& arguments) {
    return run_trainyard(scratch.path(), arguments, {}, (programs / "trainyard").string());
  };
  scratch.write("cnn.toml", cnn_file("unsynchronised", "[strategy.ddp]\nreplicas = 2\n"));

  const Output run = at({"run", "cnn.toml"});
  CHECK_MESSAGE(run.code == 1, run.err);
  CHECK(contains(run.out, "4 runs finished"));  // the sweep continues
  const std::string reason = "the gradient of layer 0.weight differs from the reference after step 1";
  CHECK_MESSAGE(contains(run.err, "broken: CNN ddp: " + reason), run.err);
  for (const char* option : {"--max-retries=0", "--no-report"}) {  // nothing is left to train
    const Output again = at({"run", "cnn.toml", option});
    CHECK_MESSAGE(again.code == 1, again.err);
    CHECK(contains(again.out, "4 were finished before"));
    CHECK_MESSAGE(contains(again.err, "broken: CNN ddp: " + reason), again.err);
  }
  CHECK(at({"resume"}).code == 1);
  for (const char* words : {"deteriorates", "broken", "missing,broken"}) {
    const Output gate = at({"compare", "--fail-on", words});
    CHECK_MESSAGE(gate.code == 3, words);
    CHECK_MESSAGE(contains(gate.err, "CNN ddp: BROKEN ("), gate.err);
  }
  CHECK(at({"compare", "--fail-on", "not-comparable,not-verified,undecided,missing"}).code == 0);
  CHECK(contains(run.out, "warning: BROKEN: CNN ddp: " + reason));
  CHECK(contains(tests::read_text(scratch.path() / "yard/reports/unsynchronised/index.html"), "BROKEN"));
  REQUIRE(at({"report", "--format", "markdown", "--out", "md"}).code == 0);
  CHECK(contains(tests::read_text(scratch.path() / "md/report.md"), "BROKEN: CNN ddp: " + reason));
  const auto verdicts = verdicts_of(json_of(at({"compare", "single", "ddp", "--format", "json"})));
  REQUIRE(verdicts.size() > 0);
  for (const auto& verdict : verdicts) {
    CHECK(verdict.at("verdict") == "BROKEN");
    CHECK(verdict.at("reason").get<std::string>().starts_with(reason));
  }

  // Each arm once, with two steps on every rank. Only the probe found the fault: the losses of the ranks look
  // fine.
  CHECK(json_of(at({"sql",
                    "SELECT strategy, seed, COUNT(*) AS records FROM probe JOIN run_summary USING (run_key) "
                    "GROUP BY run_key ORDER BY records",
                    "--format", "json"})) ==
        nlohmann::json::parse(R"([{"strategy": "single", "seed": 0, "records": 2},
                                  {"strategy": "ddp", "seed": 0, "records": 4}])"));
}
#endif

TEST_CASE("training stuck at ln 10 is reported, and arms with different global batches are NOT COMPARABLE") {
  const Scratch scratch;
  const auto at = [&](const std::vector<std::string>& arguments) {
    return run_trainyard(scratch.path(), arguments);
  };
  // Weights that halve in each step give every class the same probability.
  scratch.write("cnn.toml",
                cnn_file("stuck", "weight_decay = 10\n[strategy.ddp]\nreplicas = 2\nbatch = 100\n"));
  const Output run = at({"run", "cnn.toml"});
  CHECK_MESSAGE(run.code == 0, run.err);
  const std::vector<std::string> said{
      "CNN single and 1 other arm: 2 of 2 runs are at chance: the training loss stays at ln 10 = 2.303 and "
      "the "
      "accuracy at 1/10",
      "NOT COMPARABLE: CNN ddp: global batch (samples per step) 100 against 50",
      "The first steps of each arm were compared"};
  REQUIRE(at({"report", "--format", "markdown", "--out", "md"}).code == 0);
  const std::string page = tests::read_text(scratch.path() / "yard/reports/stuck/index.html");
  const std::string markdown = tests::read_text(scratch.path() / "md/report.md");
  for (const std::string& text : said) {
    CAPTURE(text);
    CHECK(contains(page, text));
    CHECK(contains(markdown, text));
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK(contains(run.out, "warning: " + said[i]));
  for (const auto& verdict : verdicts_of(json_of(at({"compare", "--format", "json"}))))
    CHECK(verdict.at("verdict") == "NOT COMPARABLE");
  CHECK(at({"compare", "--fail-on", "deteriorates"}).code == 3);
  CHECK(at({"compare", "--fail-on", "not-comparable"}).code == 3);
  CHECK(at({"compare", "--fail-on", "broken,not-verified,undecided,missing"}).code == 0);
}

TEST_CASE("a gate on deteriorates fails if every run of the arm failed") {
  const Scratch scratch;
  const auto at = [&](const std::vector<std::string>& arguments) {
    return run_trainyard(scratch.path(), arguments);
  };
  scratch.write("arm.sh", shell_arm("case $2 in base) epoch 1; finish;; *) echo no luck; exit 7;; esac"));
  scratch.write("arms.toml", R"(name = "arms"
[matrix]
model = ["mlp"]
strategy = ["base", "mine"]
seed = [0, 1, 2]
[defaults]
dataset = "synthetic-digits"
epochs = 1
[strategy.base]
command = ["/bin/sh", "arm.sh", "{seed}", "base"]
[strategy.mine]
command = ["/bin/sh", "arm.sh", "{seed}", "mine"]
[compare]
baseline = "base"
)");
  const Output run = at({"run", "arms.toml"});
  CHECK_MESSAGE(run.code == 1, run.err);
  CHECK_MESSAGE(contains(run.out, "3 failed"), run.out);
  CHECK(at({"compare"}).code == 0);
  for (const char* words : {"deteriorates", "missing"}) {
    const Output gate = at({"compare", "--fail-on", words});
    CHECK_MESSAGE(gate.code == 3, gate.err);
    CHECK_MESSAGE(contains(gate.err, "MLP mine"), gate.err);
  }
}
