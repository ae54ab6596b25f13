// Files that explain derives: that of a ladder loads, and its runs are the steps. That of a probe has one run of each arm.
#include "experiments/config/derived_file.h"

#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "experiments/file/file.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

const std::string original =
    "name = \"first\"\n[matrix]\nmodel = [\"mlp\", \"cnn\"]\nstrategy = [\"single\", \"ddp\"]\nseed = { "
    "count = 5 }\n"
    "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 3\nbatch = 64\n[model.cnn]\nlearning_rate = 0.02\n"
    "[strategy.single]\nthreads = 1\n[strategy.ddp]\nreplicas = 2\nbatch = { size = 64, per = \"replica\" }\n"
    "[compare]\ndiffers = [\"batch\"]\n[expect.mlp]\ntest_accuracy = 0.9\n";

const Ladder ladder{
    .baseline = "single",
    .rungs = {{"in-parts", {{"gradient_accumulation", std::int64_t{2}}}},
              {"whole-batch", {{"gradient_accumulation", std::int64_t{2}}, {"batch", std::int64_t{128}}}}},
    .arm = "ddp",
    .remedies = {{"scaled-rate-too",
                  {{"gradient_accumulation", std::int64_t{2}},
                   {"batch", std::int64_t{128}},
                   {"learning_rate", 0.04}}}}};

}  // namespace

TEST_CASE("a ladder has a run per step and seed, with the keys of the file and those of the step") {
  const std::string text =
      ladder_file(original, ladder, {.name = "first-ladder", .model = "cnn", .seeds = 3});
  const Loaded loaded = load_text(text, "first-ladder.toml");
  REQUIRE_MESSAGE(loaded.experiment.has_value(), text);
  const Experiment& experiment = *loaded.experiment;
  CHECK(experiment.name == "first-ladder");
  REQUIRE(experiment.runs.size() == 5 * 3);
  for (const Run& run : experiment.runs) {
    CAPTURE(run.strategy.name);
    CHECK(run.model == "cnn");
    CHECK(run.epochs == 3);
    const bool is_arm = run.strategy.name == "ddp";
    CHECK(run.strategy.kind == (is_arm ? "ddp" : "single"));
    if (!is_arm) CHECK(run.threads == 1);  // of [strategy.single]
    const bool is_early = run.strategy.name == "single" || run.strategy.name == "in-parts";
    CHECK(run.global_batch == (is_early ? 64 : 128));
    CHECK(effective_learning_rate(run) ==
          doctest::Approx(run.strategy.name == "scaled-rate-too" ? 0.04 : 0.02));
  }
  CHECK(experiment.compare.size() == 1);
}

TEST_CASE("a ladder refuses a file whose matrix varies what a step changes") {
  const std::string varied = "name = \"first\"\n[matrix]\nmodel = [\"mlp\"]\nbatch = [64, 128]\n";
  try {
    ladder_file(varied, ladder, {.name = "x", .model = "mlp", .seeds = 3});
    FAIL("not refused");
  } catch (const UserError& error) {
    CHECK(contains(error.what(),
                   "the matrix varies batch, and the ladder changes batch; write a file without this axis"));
  }
}

TEST_CASE("a probe has one run of the arm and one of its baseline, and only the baseline gets samples") {
  const std::string own =
      "name = \"own\"\n[matrix]\nmodel = [\"mlp\"]\nlearning_rate = [0.1, 0.2]\nstrategy = [\"one\", "
      "\"two\"]\n"
      "seed = { count = 5 }\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 3\n"
      "[strategy.one]\ncommand = [\"python3\"]\n[strategy.two]\ncommand = [\"python3\"]\nreplicas = 2\n"
      "env = { KEPT = \"1\" }\n[compare]\nbaseline = \"one\"\n[expect.mlp]\ntest_accuracy = 0.9\n";
  const Probe probe{
      .baseline = "one",
      .arm = "two",
      .axes = {{"model", std::string("mlp")}, {"learning_rate", 0.2}, {"seed", std::int64_t{3}}},
      .folder = "/samples",
      .samples = 256};
  const std::string text = probe_file(own, probe);
  const Loaded loaded = load_text(text, "own.toml");
  REQUIRE_MESSAGE(loaded.experiment.has_value(), text);
  REQUIRE(loaded.experiment->runs.size() == 2);
  for (const Run& run : loaded.experiment->runs) {
    CHECK(run.seed == 3);
    CHECK(effective_learning_rate(run) == 0.2);
  }
  CHECK(contains(text, "RECORDER_PROBE_SAMPLES = \"256\""));
  CHECK(text.find("RECORDER_PROBE_SAMPLES") == text.rfind("RECORDER_PROBE_SAMPLES"));
  CHECK(contains(text, "KEPT = \"1\""));
  CHECK_THROWS_AS(probe_file("name = \"own\"\n[matrix]\nzip = [{ seed = [1] }]\n", probe), UserError);
}
