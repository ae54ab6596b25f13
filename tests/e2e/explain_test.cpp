// trainyard explain, and its ladder, for networks of trainyard.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

TEST_CASE("explain refuses what it cannot explain, and is silent about equal arms") {
  const Scratch scratch;
  checked_output(scratch.at({"explain"}), 2, "");
  scratch.write("alone.toml", sweep_file(1, R"("single")", 1));
  REQUIRE(scratch.at({"run", "alone.toml", "--no-report"}).code == 0);
  CHECK(contains(scratch.at({"explain"}).err,
                 "nothing to explain: experiment \"small\" has no arm besides its baseline"));

  scratch.write("small.toml", sweep_file(2, R"("single", "ddp")", 2));
  REQUIRE(scratch.at({"run", "small.toml", "--no-report"}).code == 0);
  const Output said = scratch.at({"explain"});
  CHECK(said.code == 0);
  CHECK(contains(said.out, "MLP ddp against single\n"));
  CHECK(scratch.at({"explain", "small", "--arm", "ddp"}).out == said.out);
  CHECK(
      contains(scratch.at({"explain", "--probe"}).err, "the probe needs scripts that the recorder has seen"));
  CHECK(scratch.at({"explain", "--model", "mlp"}).out == said.out);
  CHECK(contains(scratch.at({"explain", "--model", "mlpp"}).err,
                 "no model of experiment \"small\" is \"mlpp\""));
  const Output unknown = scratch.at({"explain", "--arm", "dpd"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "no arm of experiment \"small\" is \"dpd\"; did you mean \"ddp\"?"));
}

TEST_CASE("the ladder trains the way to an arm, and its steps add up") {
  const Scratch scratch;
  scratch.write("small.toml",
                sweep_file(1, R"("single", "ddp")", 2) +
                    "batch = { size = 64, per = \"replica\" }\n[compare]\ndiffers = [\"batch\"]\n");
  REQUIRE(scratch.at({"run", "small.toml", "--no-report"}).code == 0);
  const Output ladder = scratch.at({"explain", "--ladder", "--seeds", "2"});
  REQUIRE_MESSAGE(ladder.code == 0, ladder.err);
  CHECK(contains(ladder.out, "wrote small-ladder.toml"));
  for (const char* row :
       {"in-parts (gradient_accumulation = 2)", "whole-batch (batch = 128)", "all steps together",
        "ddp against single", "not explained", "then scaled-rate-too (learning_rate = 0.1)",
        "then warm-up-too (warmup_steps = 30)", "Validation accuracy: 2 pairs", "single / 2",
        "unconnected (kind = \"independent\")", "in-step (kind = \"in-step\")", "ddp against single / 2"})
    CHECK_MESSAGE(contains(ladder.out, row), ladder.out);
  // Two replicas of 64 samples and one process with 128 in two parts are the same training.
  const Output rest = scratch.at(
      {"sql",
       "SELECT MAX(ABS(a.validation_loss - b.validation_loss)) < 1e-6 AS equal FROM final_metrics a JOIN "
       "final_metrics b USING (experiment, seed) WHERE a.experiment = 'small-ladder' AND a.strategy = 'ddp' "
       "AND b.strategy = 'whole-batch'",
       "--format", "csv"});
  CHECK_MESSAGE(contains(rest.out, "\n1\n"), rest.out);
  const Output again = scratch.at({"explain", "small", "--ladder", "--seeds", "2"});  // trains nothing
  CHECK(again.code == 0);
  CHECK(scratch.at({"explain", "small", "--ladder", "--model", "cnn"}).code == 2);
}
