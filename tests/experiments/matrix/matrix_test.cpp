// The runs of a matrix, with [[include]] and [[exclude]].
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "experiments/config/config.h"
#include "experiments/matrix/expand.h"
#include "tests/experiments/file/loading.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

TEST_CASE("runs are ordered by model, strategy, other axes as in the file, and seed last") {
  const Experiment experiment = loaded(R"(
name = "x"
[matrix]
seed = { count = 2 }
epochs = [2, 1]
strategy = ["single", "ddp"]
batch = [8, 4]
model = ["mlp"]
)");
  CHECK(labels(experiment) ==
        Labels{"mlp single seed 0 batch=8 epochs=2", "mlp single seed 1 batch=8 epochs=2",
               "mlp single seed 0 batch=4 epochs=2", "mlp single seed 1 batch=4 epochs=2",
               "mlp single seed 0 batch=8 epochs=1", "mlp single seed 1 batch=8 epochs=1",
               "mlp single seed 0 batch=4 epochs=1", "mlp single seed 1 batch=4 epochs=1",
               "mlp ddp seed 0 batch=8 epochs=2", "mlp ddp seed 1 batch=8 epochs=2",
               "mlp ddp seed 0 batch=4 epochs=2", "mlp ddp seed 1 batch=4 epochs=2",
               "mlp ddp seed 0 batch=8 epochs=1", "mlp ddp seed 1 batch=8 epochs=1",
               "mlp ddp seed 0 batch=4 epochs=1", "mlp ddp seed 1 batch=4 epochs=1"});
  CHECK(experiment.varied == Labels{"strategy", "epochs", "batch", "seed"});
}

TEST_CASE("the axes of a zip vary together") {
  const Experiment experiment = loaded(R"(
name = "x"
[matrix]
model = ["mlp"]
zip = [{ learning_rate = [0.1, 0.01], batch = [128, 64] }, { seed = [4, 5], epochs = [1, 1] }]
)");
  CHECK(labels(experiment) == Labels{"mlp single seed 4 batch=128 epochs=1 learning_rate=0.1",
                                     "mlp single seed 5 batch=128 epochs=1 learning_rate=0.1",
                                     "mlp single seed 4 batch=64 epochs=1 learning_rate=0.01",
                                     "mlp single seed 5 batch=64 epochs=1 learning_rate=0.01"});
  CHECK(experiment.varied == Labels{"learning_rate", "batch", "seed"});
}

TEST_CASE("excluded runs are removed, and included ones come last with single values from the matrix") {
  const Experiment experiment = loaded(R"(
name = "x"
[matrix]
model = ["mlp", "cnn"]
strategy = ["single", "ddp"]
seed = [3]
[model.cnn]
epochs = 20
[[exclude]]
model = "mlp"
strategy = "ddp"
[[exclude]]
epochs = 20
strategy = "single"
[[include]]
model = "mlp"
strategy = "ddp"
replicas = 4
)");
  CHECK(labels(experiment) == Labels{"mlp single seed 3", "cnn ddp seed 3", "mlp ddp seed 3 replicas=4"});
  CHECK(experiment.runs.back().strategy.replicas == 4);
  CHECK(experiment.strategy_locations.back().line == 17);
}

TEST_CASE("an excluded run may be invalid") {
  const Experiment experiment = loaded(R"(
name = "x"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp"]
replicas = [1, 2, 4]
[[exclude]]
strategy = "single"
replicas = 2
[[exclude]]
strategy = "single"
replicas = 4
[[exclude]]
strategy = "ddp"
replicas = 1
)");
  CHECK(experiment.runs.size() == 3);
}

// If each run were compared with each row, this would take longer than the time limit of the program in ctest.
TEST_CASE("a hundred thousand runs and 250,000 rows of [[exclude]] are not compared one by one") {
  Diagnostics problems;
  ExperimentConfig config = read_config(parse_toml(R"(
name = "x"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp"]
seed = { count = 50000 }
)",
                                                   "f.toml"),
                                        "f.toml", problems);
  for (std::int64_t seed = 1; seed <= 250'000; ++seed)
    config.exclude.push_back({{}, {{"batch", {std::int64_t{128}, {}}}, {"seed", {seed, {}}}}, {}, false});
  const std::vector<ExpandedRun> left = expand(config, problems);
  REQUIRE(left.size() == 2);  // the runs with seed 0
  CHECK(label(left[0].run) == "mlp single seed 0");
  CHECK(label(left[1].run) == "mlp ddp seed 0");
  CHECK(problems.errors() == 0);
  CHECK(problems.in_file_order().size() == 1);  // rows without a run: one text, as all are at one location
}

TEST_CASE("rows of [[exclude]] with different keys remove runs, and a row without a run is a warning") {
  const std::string matrix =
      "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"ddp\"]\nseed = { count = 3 }\n";
  const std::string rows =
      "[[exclude]]\nseed = 0\n[[exclude]]\nseed = 1\nstrategy = \"ddp\"\n"
      "[[exclude]]\nstrategy = \"ddp\"\nseed = 0\n";
  CHECK(labels(loaded(matrix + rows)) == Labels{"mlp single seed 1", "mlp single seed 2", "mlp ddp seed 2"});
  CHECK(problems_of(matrix + rows).empty());  // the third row matches a run that the first one removes
  CHECK(problem_of(matrix + rows + "[[exclude]]\nseed = 3\n[[exclude]]\nstages = 2\n") ==
        "f.toml:14:1: warning: [[exclude]] matches no run of the matrix\n"
        "f.toml:16:1: warning: [[exclude]] matches no run of the matrix");
}

TEST_CASE("a file with only included rows has one run per row") {
  const Experiment experiment =
      loaded("name = \"x\"\n[[include]]\nmodel = \"mlp\"\n[[include]]\nmodel = \"cnn\"\nseed = 2\n");
  CHECK(labels(experiment) == Labels{"mlp single seed 0", "cnn single seed 2"});
}

TEST_CASE("property: a matrix has its product of runs less excluded plus included, with unique keys") {
  std::mt19937 random(20261120);
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)) + 1; };
  for (int round = 0; round < 30; ++round) {
    const int epochs = up_to(4), batches = up_to(4), seeds = up_to(5), strategies = up_to(2);
    std::string toml = "name = \"p\"\n[matrix]\nseed = { count = " + std::to_string(seeds) +
                       " }\nmodel = [\"mlp\", \"cnn\"]\n";
    toml += strategies == 1 ? "strategy = [\"ddp\"]\n" : "strategy = [\"ddp\", \"single\"]\n";
    toml += "epochs = [";
    for (int i = 1; i <= epochs; ++i) toml += std::to_string(i) + ",";
    toml += "]\nzip = [{ batch = [";
    for (int i = 1; i <= batches; ++i) toml += std::to_string(16 * i) + ",";
    toml += "], learning_rate = [";
    for (int i = 1; i <= batches; ++i) toml += "0.0" + std::to_string(i) + ",";
    toml += "] }]\n";
    int expected = 2 * strategies * epochs * batches * seeds;
    if (epochs > 1) {
      toml += "[[exclude]]\nepochs = " + std::to_string(up_to(epochs)) + "\nmodel = \"cnn\"\n";
      expected -= strategies * batches * seeds;
    }
    const int included = up_to(3);
    for (int i = 0; i < included; ++i)
      toml +=
          "[[include]]\nmodel = \"mlp\"\nstrategy = \"ddp\"\nepochs = 9\nbatch = 8\nlearning_rate = 1\nseed "
          "= " +
          std::to_string(i) + "\n";
    CAPTURE(toml);
    const Experiment experiment = loaded(toml);
    CHECK(experiment.runs.size() == static_cast<std::size_t>(expected + included));
    std::set<std::string> keys;
    for (const Run& run : experiment.runs) {
      keys.insert(run_key(run));
      CHECK(run_from_json(nlohmann::json::parse(to_json(run).dump())) == run);
    }
    CHECK(keys.size() == experiment.runs.size());
  }
}

TEST_CASE("keys do not depend on the order of axes, values and tables, or on the file name") {
  const auto keys = [](const std::string& toml, const char* file) {
    std::set<std::string> all;
    const Loaded result = load_text(toml, file);
    for (const Run& run : result.experiment.value().runs) all.insert(run_key(run));
    return all;
  };
  CHECK(keys("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nbatch = [8, 16]\nepochs = [1, "
             "2]\n[defaults]\nthreads = 1\n[model.mlp]\nhidden = [3]\n",
             "a.toml") == keys("name = \"y\"\n[model.mlp]\nhidden = [3]\nthreads = 2\n[matrix]\nepochs = [2, "
                               "1]\nbatch = [16, 8]\nmodel = [\"mlp\"]\n",
                               "b/c.toml"));
}
