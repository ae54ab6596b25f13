// Valid experiment files and the meaning of their values.
#include "experiments/file/file.h"

#include <doctest/doctest.h>

#include "tests/experiments/file/loading.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

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
  CHECK(run.hyperparameters.at("hidden") == Value(std::vector<std::int64_t>{250, 100}));
  CHECK_FALSE(experiment.machine.devices.has_value());
  CHECK(experiment.machine.exclusive_host);
  CHECK(experiment.compare.empty());
  CHECK(experiment.varied.empty());
}

TEST_CASE("every key of the file has an effect on its runs") {
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

TEST_CASE("a strategy overrides a model, a model overrides the defaults, and the matrix overrides all") {
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

TEST_CASE("each run has the place of its strategy in the file") {
  const Experiment experiment =
      loaded("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"ddp\"]\n");
  REQUIRE(experiment.strategy_locations.size() == 2);
  CHECK(to_text(experiment.strategy_locations[0]) == "f.toml:4:13");
  CHECK(to_text(experiment.strategy_locations[1]) == "f.toml:4:23");
}

TEST_CASE("without [compare], strategies are compared with single if the matrix has both") {
  const auto compare = [](const std::string& strategies) {
    return loaded("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [" + strategies + "]\n").compare;
  };
  REQUIRE(compare("\"single\", \"ddp\"").size() == 1);
  CHECK(to_json(compare("\"single\", \"ddp\"")[0]) == to_json(Compare{}));
  CHECK(compare("\"single\"").empty());
  CHECK(compare("\"ddp\"").empty());
}

TEST_CASE("all members of a comparison are read, and a file may have several") {
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
  CHECK(rates.differs == Labels{"epochs"});
  CHECK(to_json(experiment.compare[1]) == to_json(Compare{}));
}
