// The experiment file of a ladder: it loads, and its runs are the steps.
#include "experiments/config/ladder_file.h"

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
