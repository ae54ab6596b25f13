// Shipped experiments: that of MNIST as it is, and in a short form GPT beside a program in PyTorch. Epochs of a number of
// steps under every strategy.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shipped_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// "validation_loss of seed 0 after epoch 2", by strategy.
std::map<std::string, std::map<std::string, double>> losses(const Scratch& scratch,
                                                            const std::string& experiment) {
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  std::map<std::string, std::map<std::string, double>> found;
  for (const auto& row : db::epoch_averages(database, experiment)) {
    const std::string place =
        " of seed " + std::to_string(row.seed) + " after epoch " + std::to_string(row.epoch);
    found["train_loss" + place][row.strategy] = row["train_loss"];
    found["validation_loss" + place][row.strategy] = row["validation_loss"];
    found["train_accuracy" + place][row.strategy] = row["train_accuracy"];
  }
  return found;
}

void check_equal(const std::map<std::string, std::map<std::string, double>>& losses, std::size_t arms,
                 double tolerance) {
  for (const auto& [what, of] : losses) {
    CAPTURE(what);
    CHECK(of.size() == arms);
    for (const auto& [strategy, loss] : of) {
      CAPTURE(strategy);
      CHECK(std::abs(loss - of.at("single")) <= tolerance * of.at("single"));
    }
  }
}

// Mean test accuracy in points, by strategy.
std::map<std::string, double> mean_test_accuracy(const db::Database& database) {
  std::map<std::string, double> sum, count;
  for (const auto& run : db::final_metrics(database, "mnist")) {
    sum[run.strategy] += 100 * run["test_accuracy"];
    count[run.strategy] += 1;
    CHECK(run["test_accuracy"] > 0.92);
    CHECK(run.epochs <= 10);
  }
  for (auto& [strategy, value] : sum) value /= count[strategy];
  return sum;
}

}  // namespace

TEST_CASE("MNIST reaches more than 92 % in ten epochs, and two replicas train like one device") {
  const auto data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch scratch;
  const auto output = scratch.at({"run", TRAINYARD_SOURCE "/experiments/mnist.toml", "--data", data});
  REQUIRE_MESSAGE(output.code == 0, output.err);
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto accuracy = mean_test_accuracy(database);
  REQUIRE(accuracy.size() == 2);
  CHECK(std::abs(accuracy.at("single") - accuracy.at("ddp")) <= 0.5);

  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::string, double>> losses;
  for (const auto& row : db::epoch_averages(database, "mnist"))
    if (row.epoch <= 3) losses[{row.seed, row.epoch}][row.strategy] = row["train_loss"];
  REQUIRE(losses.size() == 9);
  for (const auto& [at, loss] : losses)
    CHECK(loss.at("ddp") == doctest::Approx(loss.at("single")).epsilon(1e-3));
}

TEST_CASE("GPT trains for 20 steps as the program in PyTorch beside it, from the same weights and batches") {
  const auto data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch scratch;
  scratch.write("gpt_shakespeare.py", shipped("gpt_shakespeare.py"));
  std::string file = replaced(shipped("gpt-shakespeare.toml"), "\"python3\"", "\"" TRAINYARD_PYTHON "\"");
  file = replaced(replaced(file, "epochs                 = 20 ", "epochs = 2 "), "count = 5", "count = 1");
  file = replaced(replaced(file, "epoch        = 100", "epoch = 10"), "steps           = 100", "steps = 5");
  scratch.write("gpt.toml", file);
  const auto run = scratch.at({"run", "gpt.toml", "--data", data});
  REQUIRE_MESSAGE(run.code == 0, (run.out + run.err));
  const auto found = losses(scratch, "gpt shakespeare");
  CHECK(found.size() == 6);
  check_equal(found, 2, 1e-3);
  const double first = found.at("train_loss of seed 0 after epoch 1").at("single");
  CHECK(first < std::log(69));  // of 69 tokens that are equally likely
  CHECK(first > 3);
  CHECK(found.at("validation_loss of seed 0 after epoch 2").at("single") < 3.5);
  const auto compared = scratch.at({"compare"});
  for (const char* doubt : {"NOT VERIFIED", "NOT COMPARABLE", "BROKEN"})
    CHECK_MESSAGE(!contains(compared.out, doubt), compared.out);
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  CHECK(db::select(database, "SELECT DISTINCT value FROM run_axis WHERE name = 'steps_per_epoch'")
            .rows.size() == 1);
}

TEST_CASE(
    "epochs of a number of steps have the same batches under every strategy, across the end of a pass") {
  const Scratch scratch;
  scratch.write("steps.toml", R"(name = "steps"
[matrix]
model    = ["gpt"]
strategy = ["single", "ddp", "mp", "pipeline", "mp-ddp"]
seed     = [1]
[defaults]
dataset         = "synthetic-prose"
train_samples   = 50
window_length   = 16
batch           = 12
epochs          = 3
steps_per_epoch = 3              # a pass is 4.2 steps
optimizer       = "adamw"
learning_rate   = 0.01
weight_decay    = 0.1
weight_decay_of = "matrices"
[model.gpt]
layers  = 2
width   = 16
dropout = 0.1
)");
  const auto run = scratch.at({"run", "steps.toml", "--no-report"});
  REQUIRE_MESSAGE(run.code == 0, (run.out + run.err));
  check_equal(losses(scratch, "steps"), 5, 1e-4);
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto weights =
      db::select(database, "SELECT DISTINCT weight FROM epoch_mean WHERE phase = 'train' AND name = 'loss'")
          .rows;
  REQUIRE(weights.size() == 1);
  CHECK(nlohmann::json(weights[0][0]) == 3 * 12 * 16);  // tokens per epoch: all steps are full
  const auto plan = scratch.at({"check", "steps.toml", "--set", "heads=3"});
  CHECK(plan.code == 2);
  CHECK_MESSAGE(contains(plan.err, "the width 16 of model \"gpt\" is not a multiple of its 3 heads"),
                plan.err);
}
