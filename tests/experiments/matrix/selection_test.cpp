// --set and --where: values and runs that the command line changes.
#include <set>

#include <doctest/doctest.h>

#include "tests/experiments/file/loading.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

namespace {

const std::string sweep = R"(
name = "x"
[matrix]
model = ["mlp", "cnn"]
strategy = ["single", "ddp"]
seed = { count = 3 }
zip = [{ learning_rate = [0.1, 0.01], batch = [128, 64] }]
[model.cnn]
epochs = 20
[strategy.ddp]
epochs = 30
[[include]]
model = "mlp"
strategy = "ddp"
seed = 0
learning_rate = 0.5
batch = 32
epochs = 40
)";

Experiment set(const std::string& change) {
  return loaded(sweep, {.set = {change}, .where = {}});
}
std::size_t kept(const std::vector<std::string>& where) {
  return loaded(sweep, {.set = {}, .where = where}).runs.size();
}

}  // namespace

TEST_CASE("--set changes every run, and overrides all tables, the matrix and included rows") {
  CHECK(loaded(sweep).runs.size() == 25);
  const Experiment short_runs = set("epochs=1");
  CHECK(short_runs.runs.size() == 25);
  for (const Run& run : short_runs.runs) CHECK(run.epochs == 1);
}

TEST_CASE("--set of an axis replaces it by the one value, even in a zip") {
  CHECK(set("seed=7").runs.size() == 9);
  const Experiment one_model = set("model=mlp");
  CHECK(one_model.runs.size() == 13);
  CHECK(one_model.runs.at(0).model == "mlp");
  const Experiment one_batch = set("batch = 16");
  CHECK(one_batch.runs.size() == 25);
  for (const Run& run : one_batch.runs) CHECK(run.global_batch == 16);
  CHECK(one_batch.varied == Labels{"model", "strategy", "learning_rate", "seed", "epochs"});
}

TEST_CASE("--set of replicas changes only strategies with replicas") {
  for (const Run& run : set("replicas=3").runs)
    CHECK(run.strategy.replicas == (run.strategy.kind == "ddp" ? 3 : 1));
}

TEST_CASE("if --set of an axis makes runs equal, one of them remains") {
  const std::string toml =
      "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nepochs = [1, 2]\n[[include]]\nepochs = 3\n";
  CHECK(loaded(toml).runs.size() == 3);
  CHECK(loaded(toml, {.set = {"epochs=5"}, .where = {}}).runs.size() == 1);
}

TEST_CASE("--set reads values as TOML and bare words as text, and the last value of a key counts") {
  const Experiment experiment =
      loaded(sweep, {.set = {"optimizer=adam", "optimizer=\"sgd\"", "hidden=[8]"}, .where = {}});
  for (const Run& run : experiment.runs) {
    CHECK(run.optimizer.kind == "sgd");
    CHECK(run.hyperparameters.at("hidden") == Value(std::vector<std::int64_t>{8}));
  }
}

TEST_CASE("a changed run has the same key as in the whole sweep") {
  std::set<std::string> keys;
  for (const Run& run : loaded(sweep).runs) keys.insert(run_key(run));
  for (const Run& run : set("seed=2").runs)
    if (run.axes.at("batch") != Value(std::int64_t{32})) CHECK(keys.contains(run_key(run)));
}

TEST_CASE("--where keeps the runs that match one value of each name") {
  CHECK(kept({"model=mlp"}) == 13);
  CHECK(kept({"model=mlp,model=cnn"}) == 25);
  CHECK(kept({"model=mlp", "strategy=ddp"}) == 7);
  CHECK(kept({"model=mlp,strategy=ddp,seed=0"}) == 3);
  CHECK(kept({"seed=0", "seed=2"}) == 17);
  CHECK(kept({"learning_rate=0.10"}) == 12);
  CHECK(kept({"learning_rate=1e-2"}) == 12);
  CHECK(kept({"hidden=[250, 100]"}) == 13);
  CHECK(kept({"epochs=20"}) == 6);
}

TEST_CASE("a comparison that loses its baseline through --set is a warning") {
  const Loaded result = load_text(sweep + "[compare]\n", "f.toml", {.set = {"strategy=ddp"}, .where = {}});
  REQUIRE(result.experiment.has_value());
  CHECK(result.experiment->compare.empty());
  REQUIRE(result.problems.size() == 1);
  CHECK(result.problems[0].warning);
}
