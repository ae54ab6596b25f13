// Experiment files that are right: what they mean.
#include "experiments/file.h"

#include <algorithm>
#include <random>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "experiments/template.h"
#include "models/datasets.h"
#include "scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

std::string texts(const std::vector<Problem>& problems) {
  std::string all;
  for (const Problem& problem : problems) all += to_text(problem) + '\n';
  return all;
}

Experiment loaded(const std::string& toml, const Selection& selection = {}) {
  Loaded result = load_text(toml, "f.toml", selection);
  REQUIRE_MESSAGE(result.experiment.has_value(), texts(result.problems));
  return std::move(*result.experiment);
}

std::vector<std::string> labels(const Experiment& experiment) {
  std::vector<std::string> all;
  for (const Run& run : experiment.runs) all.push_back(label(run));
  return all;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("the smallest file is one run with every default") {
  const Experiment experiment = loaded("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n");
  REQUIRE(experiment.runs.size() == 1);
  const Run& run = experiment.runs[0];
  CHECK(run.strategy == Strategy{.name = "single", .kind = "single", .replicas = 1, .stages = 1});
  CHECK(
      run.optimizer ==
      Optimizer{
          .kind = "sgd", .learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0, .schedule = "constant"});
  CHECK(run.epochs == 10);
  CHECK(run.global_batch == 128);
  CHECK(run.seed == 0);
  CHECK_FALSE(run.threads.has_value());
  CHECK(run.data.dataset == "mnist");
  CHECK(run.data.split == std::array{0.8, 0.1, 0.1});
  CHECK_FALSE(run.data.train_samples.has_value());
  CHECK(run.hyperparameters.at("hidden") == models::Value(std::vector<std::int64_t>{250, 100}));
  CHECK_FALSE(experiment.machine.devices.has_value());
  CHECK(experiment.machine.exclusive_host);
  CHECK(experiment.compare.empty());
  CHECK(experiment.varied.empty());
}

TEST_CASE("every key of the file reaches its runs") {
  const Experiment experiment = loaded(R"(
name = "all keys"
data_seed = 7
[data]
mnist = "digits"
cifar10 = "synthetic"
[matrix]
model = ["cnn"]
strategy = ["ddp"]
seed = [11]
[defaults]
dataset = "cifar10"
epochs = 3
batch = { size = 96, per = "global" }
optimizer = "adam"
weight_decay = 1
data_split = [0.5, 0.25, 0.25]
train_samples = 1000
threads = 2
[model.cnn]
channels = [4, 8]
hidden = [32]
[strategy.ddp]
replicas = 3
[machine]
devices = 4
exclusive = "devices"
)");
  CHECK(experiment.name == "all keys");
  CHECK(experiment.data_seed == 7);
  CHECK(experiment.data == std::map<std::string, std::string>{{"mnist", "digits"}, {"cifar10", "synthetic"}});
  CHECK(experiment.machine.devices == 4);
  CHECK_FALSE(experiment.machine.exclusive_host);
  REQUIRE(experiment.runs.size() == 1);
  const Run& run = experiment.runs[0];
  CHECK(run.model == "cnn");
  CHECK(run.hyperparameters == models::Hyperparameters{{"channels", std::vector<std::int64_t>{4, 8}},
                                                       {"hidden", std::vector<std::int64_t>{32}}});
  CHECK(run.data.dataset == "cifar10");
  CHECK(run.data.split_seed == 7);
  CHECK(run.data.split == std::array{0.5, 0.25, 0.25});
  CHECK(run.data.train_samples == 1000);
  CHECK(run.strategy == Strategy{.name = "ddp", .kind = "ddp", .replicas = 3, .stages = 1});
  CHECK(
      run.optimizer ==
      Optimizer{
          .kind = "adam", .learning_rate = 0.001, .momentum = 0, .weight_decay = 1, .schedule = "constant"});
  CHECK(run.epochs == 3);
  CHECK(run.global_batch == 96);
  CHECK(run.seed == 11);
  CHECK(run.threads == 2);
}

TEST_CASE("a strategy is stronger than a model, a model than the defaults, the matrix than all") {
  const auto epochs = [](const std::string& matrix, const std::string& strategy, const std::string& model) {
    const std::string toml = "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"ddp\"]\n" + matrix +
                             "[strategy.ddp]\n" + strategy + "[model.mlp]\n" + model +
                             "[defaults]\nepochs = 2\n";
    return loaded(toml).runs.at(0).epochs;
  };
  CHECK(epochs("", "", "") == 2);
  CHECK(epochs("", "", "epochs = 3\n") == 3);
  CHECK(epochs("", "epochs = 4\n", "epochs = 3\n") == 4);
  CHECK(epochs("epochs = [5]\n", "epochs = 4\n", "epochs = 3\n") == 5);
}

TEST_CASE("runs come in the order model, strategy, other axes as in the file, seed fastest") {
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

TEST_CASE("each run knows where its strategy stands") {
  const Experiment experiment =
      loaded("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"ddp\"]\n");
  REQUIRE(experiment.strategy_locations.size() == 2);
  CHECK(to_text(experiment.strategy_locations[0]) == "f.toml:4:13");
  CHECK(to_text(experiment.strategy_locations[1]) == "f.toml:4:23");
}

TEST_CASE("the axes of a zip go together") {
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

TEST_CASE("excluded runs are gone, included ones come last and take single values from the matrix") {
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

TEST_CASE("what is wrong with an excluded run is no problem") {
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

TEST_CASE("a file of added rows alone is one run a row") {
  const Experiment experiment =
      loaded("name = \"x\"\n[[include]]\nmodel = \"mlp\"\n[[include]]\nmodel = \"cnn\"\nseed = 2\n");
  CHECK(labels(experiment) == Labels{"mlp single seed 0", "cnn single seed 2"});
}

TEST_CASE("without a comparison strategies are compared with single, where the matrix has both") {
  const auto compare = [](const std::string& strategies) {
    return loaded("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [" + strategies + "]\n").compare;
  };
  REQUIRE(compare("\"single\", \"ddp\"").size() == 1);
  CHECK(to_json(compare("\"single\", \"ddp\"")[0]) == to_json(Compare{}));
  CHECK(compare("\"single\"").empty());
  CHECK(compare("\"ddp\"").empty());
}

TEST_CASE("comparisons are read in full, and several may stand in one file") {
  const Experiment experiment = loaded(R"(
name = "x"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp"]
learning_rate = [1, 0.1]
seed = { count = 2 }
[[compare]]
axis = "learning_rate"
baseline = 1
pair = []
margins = { time = 2, loss = { ratio = 1.5, absolute = 0 }, accuracy_points = 1 }
alpha = 0.01
final = true
differs = ["epochs"]
[[compare]]
)");
  REQUIRE(experiment.compare.size() == 2);
  const Compare& rates = experiment.compare[0];
  CHECK(rates.axis == "learning_rate");
  CHECK(rates.baseline == "1.0");
  CHECK(rates.pair.empty());
  CHECK(rates.margins.time == 2);
  CHECK(rates.margins.loss.ratio == 1.5);
  CHECK(rates.margins.loss.absolute == 0);
  CHECK(rates.margins.accuracy_points == 1);
  CHECK(rates.alpha == 0.01);
  CHECK(rates.final_look);
  CHECK(rates.differs == Labels{"epochs"});
  CHECK(to_json(experiment.compare[1]) == to_json(Compare{}));
}

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

TEST_CASE("--set holds for every run, over all tables, the matrix and added rows") {
  CHECK(loaded(sweep).runs.size() == 25);
  const Experiment short_runs = set("epochs=1");
  CHECK(short_runs.runs.size() == 25);
  for (const Run& run : short_runs.runs) CHECK(run.epochs == 1);
}

TEST_CASE("--set of an axis replaces it by the one value, also in a zip") {
  CHECK(set("seed=7").runs.size() == 9);
  const Experiment one_model = set("model=mlp");
  CHECK(one_model.runs.size() == 13);
  CHECK(one_model.runs.at(0).model == "mlp");
  const Experiment one_batch = set("batch = 16");
  CHECK(one_batch.runs.size() == 25);
  for (const Run& run : one_batch.runs) CHECK(run.global_batch == 16);
  CHECK(one_batch.varied == Labels{"model", "strategy", "learning_rate", "seed", "epochs"});
}

TEST_CASE("--set of replicas means the strategies that have them") {
  for (const Run& run : set("replicas=3").runs)
    CHECK(run.strategy.replicas == (run.strategy.kind == "ddp" ? 3 : 1));
}

TEST_CASE("--set of an axis that makes runs equal keeps one of them") {
  const std::string toml =
      "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nepochs = [1, 2]\n[[include]]\nepochs = 3\n";
  CHECK(loaded(toml).runs.size() == 3);
  CHECK(loaded(toml, {.set = {"epochs=5"}, .where = {}}).runs.size() == 1);
}

TEST_CASE("--set takes values as TOML, bare words as text; the last of one key counts") {
  const Experiment experiment =
      loaded(sweep, {.set = {"optimizer=adam", "optimizer=\"sgd\"", "hidden=[8]"}, .where = {}});
  for (const Run& run : experiment.runs) {
    CHECK(run.optimizer.kind == "sgd");
    CHECK(run.hyperparameters.at("hidden") == models::Value(std::vector<std::int64_t>{8}));
  }
}

TEST_CASE("a changed run has the key that it has in the whole sweep") {
  std::set<std::string> keys;
  for (const Run& run : loaded(sweep).runs) keys.insert(run_key(run));
  for (const Run& run : set("seed=2").runs)
    if (run.axes.at("batch") != models::Value(std::int64_t{32})) CHECK(keys.contains(run_key(run)));
}

TEST_CASE("--where keeps runs of which all names have one of their values") {
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

TEST_CASE("a comparison that --set leaves without its baseline is a warning") {
  const Loaded result = load_text(sweep + "[compare]\n", "f.toml", {.set = {"strategy=ddp"}, .where = {}});
  REQUIRE(result.experiment.has_value());
  CHECK(result.experiment->compare.empty());
  REQUIRE(result.problems.size() == 1);
  CHECK(result.problems[0].warning);
}

TEST_CASE(
    "property: a matrix has as many runs as its product less the excluded plus the included, and each key "
    "once") {
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

TEST_CASE("keys do not depend on the order of axes, values, tables, or on the name of the file") {
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

TEST_CASE("the shipped files are right") {
  struct Shipped {
    std::string file, name;
    std::size_t runs, comparisons;
  };
  for (const Shipped& shipped : {Shipped{"demo", "demo", 20, 1},
                                 {"mnist", "mnist", 6, 1},
                                 {"six-models", "six models", 90, 1},
                                 {"published-study", "published study", 105, 2},
                                 {"published-study-fair", "published study fair", 105, 2},
                                 {"parallel-ml", "parallel ml", 60, 3}}) {
    CAPTURE(shipped.file);
    const Loaded result = load("experiments/" + shipped.file + ".toml");
    CHECK_MESSAGE(result.problems.empty(), texts(result.problems));
    REQUIRE(result.experiment.has_value());
    CHECK(result.experiment->name == shipped.name);
    CHECK(result.experiment->compare.size() == shipped.comparisons);
    CHECK(result.experiment->runs.size() == shipped.runs);
  }
}

TEST_CASE("every value of a published protocol is marked as stated or assumed") {
  for (const char* file : {"published-study", "published-study-fair", "parallel-ml"}) {
    const Loaded result = load(std::string("experiments/") + file + ".toml");
    REQUIRE(result.experiment.has_value());
    std::istringstream lines(result.experiment->toml);
    bool values = false;  // in a table of values, not in the matrix or a comparison
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      if (line.starts_with("["))
        values =
            line.starts_with("[defaults") || line.starts_with("[model.") || line.starts_with("[strategy.");
      const bool marked =
          line.find("# stated") != std::string::npos || line.find("# assumed") != std::string::npos;
      if (values && !line.starts_with("[") && line.find(" = ") != std::string::npos) CHECK(marked);
    }
  }
}

TEST_CASE("the study at an equal global batch differs from the published one in batch and sampler alone") {
  Experiment published = std::move(load("experiments/published-study.toml").experiment.value());
  const Experiment fair = std::move(load("experiments/published-study-fair.toml").experiment.value());
  REQUIRE(published.runs.size() == fair.runs.size());
  for (std::size_t i = 0; i < fair.runs.size(); ++i) {
    Run& run = published.runs[i];
    CHECK(run.global_batch == 64 * run.strategy.replicas);
    CHECK(fair.runs[i].global_batch == 64);
    CHECK((run.strategy.replicas > 1 || run_key(run) == run_key(fair.runs[i])));
    run.batch_per = fair.runs[i].batch_per;
    run.global_batch = fair.runs[i].global_batch;
    run.sampler = fair.runs[i].sampler;
    CHECK(run == fair.runs[i]);
  }
}

TEST_CASE("the six models need no download, and each of their hybrids is cut in two") {
  Experiment experiment = std::move(load("experiments/six-models.toml").experiment.value());
  resolve_data(experiment, {});
  CHECK(experiment.expect.size() == 6);
  for (const Run& run : experiment.runs) {
    CAPTURE(label(run));
    CHECK(run.data.source.starts_with("synthetic-"));
    CHECK(run.strategy.boundaries.size() == (run.strategy.kind == "mp-ddp" ? 1 : 0));
  }
}

TEST_CASE("the file of `trainyard new` is right and needs no download") {
  Experiment experiment = loaded(template_file("my sweep"));
  CHECK(load_text(template_file("my sweep"), "f.toml").problems.empty());
  CHECK(experiment.name == "my sweep");
  CHECK(experiment.compare.size() == 1);
  resolve_data(experiment, {});
  for (const Run& run : experiment.runs) CHECK(run.data.source == "synthetic-digits");
}

TEST_CASE("`trainyard new` makes a name of any file's name") {
  CHECK(loaded(template_file("a+b\"c")).name == "a-b-c");
  CHECK(loaded(template_file("..")).name == "experiment");
  CHECK(loaded(template_file("")).name == "experiment");
  CHECK(loaded(template_file(std::string(200, 'n'))).name == std::string(80, 'n'));
}
