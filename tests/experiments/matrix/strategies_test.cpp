// Strategies: kinds, labels, batches, stages balanced by estimated cost, and their errors.
#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "base/error.h"
#include "experiments/matrix/stage_split.h"
#include "tests/experiments/file/loading.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

namespace {

using Boundaries = std::vector<std::int64_t>;

double largest_part(const std::vector<double>& costs, const Boundaries& boundaries) {
  double largest = 0;
  std::size_t begin = 0;
  for (std::size_t part = 0; part <= boundaries.size(); ++part) {
    const auto end = part < boundaries.size() ? static_cast<std::size_t>(boundaries[part]) : costs.size();
    CHECK(end > begin);
    double cost = 0;
    for (; begin < end; ++begin) cost += costs[begin];
    largest = std::max(largest, cost);
  }
  return largest;
}

// The smallest possible cost of the most expensive part, by trying all cuts.
double least_largest(const std::vector<double>& costs, std::int64_t parts) {
  double best = 1e300;
  for (std::uint32_t cuts = 0; cuts < 1u << (costs.size() - 1); ++cuts) {
    Boundaries boundaries;
    for (std::size_t i = 1; i < costs.size(); ++i)
      if ((cuts >> (i - 1) & 1u) != 0) boundaries.push_back(static_cast<std::int64_t>(i));
    if (static_cast<std::int64_t>(boundaries.size()) == parts - 1)
      best = std::min(best, largest_part(costs, boundaries));
  }
  return best;
}

}  // namespace

TEST_CASE("independent runs are like single runs: they share no batch, and their weights are not saved") {
  const Experiment experiment = loaded(start + R"(strategy = ["single", "ddp", "independent"]
[defaults]
batch = { size = 3, per = "replica" }
train_samples = 6
save = "last"
[strategy.ddp]
replicas = 2
[strategy.independent]
replicas = 4
)");
  REQUIRE(experiment.runs.size() == 3);
  const Run& single = experiment.runs[0];
  const Run& independent = experiment.runs[2];
  CHECK(experiment.runs[1].global_batch == 6);
  CHECK(independent.global_batch == 3);
  CHECK(independent.strategy.world_size() == 4);
  CHECK(single.save == "last");
  CHECK(independent.save.empty());  // four ranks would write the same file
  CHECK(run_key(independent) != run_key(single));
  // A batch of 3 is enough for 4 runs, because each run has its own batch.
  CHECK(problems_of(start +
                    "strategy = [\"single\", \"independent\"]\n[defaults]\nbatch = 3\ntrain_samples = 3\n"
                    "[strategy.independent]\nreplicas = 4\n")
            .empty());
}

TEST_CASE("every kind of strategy has its mesh and schedule") {
  const Experiment experiment =
      loaded(start + "strategy = [\"single\", \"ddp\", \"mp\", \"pipeline\", \"mp-ddp\"]\n");
  REQUIRE(experiment.runs.size() == 5);
  const auto is = [&](std::size_t i, std::int64_t replicas, std::int64_t stages, const std::string& schedule,
                      std::int64_t micro_batches) {
    const Strategy& strategy = experiment.runs[i].strategy;
    CHECK(strategy.replicas == replicas);
    CHECK(strategy.stages == stages);
    CHECK(strategy.schedule == schedule);
    CHECK(strategy.micro_batches == micro_batches);
  };
  is(0, 1, 1, "", 1);
  is(1, 2, 1, "", 1);
  is(2, 1, 2, "", 1);
  is(3, 1, 2, "1f1b", 4);
  is(4, 2, 2, "1f1b", 4);
}

TEST_CASE("a sweep may have several strategies of one kind, under their own names") {
  const Experiment experiment = loaded(start + R"(
strategy = ["single", "ddp", "ddp-3", "gpipe"]
[strategy.ddp-3]
kind = "ddp"
replicas = 3
[strategy.gpipe]
kind = "pipeline"
schedule = "gpipe"
micro_batches = 8
)");
  REQUIRE(experiment.runs.size() == 4);
  CHECK(experiment.runs[1].strategy.replicas == 2);
  CHECK(experiment.runs[2].strategy.name == "ddp-3");
  CHECK(experiment.runs[2].strategy.kind == "ddp");
  CHECK(experiment.runs[2].strategy.replicas == 3);
  CHECK(experiment.runs[3].strategy.schedule == "gpipe");
  CHECK(experiment.runs[3].strategy.micro_batches == 8);
  CHECK(label(experiment.runs[2]) == "mlp ddp-3 seed 0");
}

TEST_CASE("a batch per replica grows with the number of replicas, and a global batch does not") {
  const std::string both = start +
                           "strategy = [\"single\", \"ddp\"]\n[defaults]\nlearning_rate = 0.1\n"
                           "learning_rate_scaling = \"linear\"\n";
  const Experiment unfair = loaded(both + "batch = { size = 64, per = \"replica\" }\n");
  CHECK(unfair.runs[0].global_batch == 64);
  CHECK(unfair.runs[1].global_batch == 128);
  CHECK(effective_learning_rate(unfair.runs[0]) == 0.1);
  CHECK(effective_learning_rate(unfair.runs[1]) == 0.2);
  CHECK(values_by_name(unfair.runs[1]).at("batch") == Value(std::string("64 per replica")));
  const Experiment fair = loaded(both + "batch = 64\n");
  CHECK(fair.runs[1].global_batch == 64);
  CHECK(effective_learning_rate(fair.runs[1]) == 0.1);
  const Loaded set = load_text(both, "f.toml", {.set = {"batch=32 per replica"}, .where = {}});
  REQUIRE(set.experiment.has_value());
  CHECK(set.experiment->runs[1].global_batch == 64);
}

TEST_CASE("the cost of the most expensive part is optimal, for random costs") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> costs(1 + random() % 9);
    for (double& cost : costs) cost = random() % 4 == 0 ? 0 : static_cast<double>(random() % 50);
    for (std::int64_t parts = 1; parts <= static_cast<std::int64_t>(costs.size()); ++parts) {
      const Boundaries boundaries = balanced_boundaries(costs, parts);
      REQUIRE(static_cast<std::int64_t>(boundaries.size()) == parts - 1);
      CHECK(largest_part(costs, boundaries) == least_largest(costs, parts));
    }
  }
}

TEST_CASE("equally good cuts are decided by the sum of squares, then by the latest cut") {
  CHECK(balanced_boundaries({1, 1, 1, 1, 10}, 3) == Boundaries{2, 4});
  CHECK(balanced_boundaries({5, 0, 0, 5}, 2) == Boundaries{3});  // free layers stay with the previous part
  CHECK(balanced_boundaries({0, 0, 0}, 3) == Boundaries{1, 2});
  CHECK(balanced_boundaries({3}, 1).empty());
  CHECK_THROWS_AS(balanced_boundaries({3}, 2), InternalError);
}

// flatten, 784×250, relu, 250×100, relu, 100×10: 196,000, 25,000 and 1,000 multiply-adds.
TEST_CASE("stages are balanced by estimated cost after the data is known, or as listed in the file") {
  Experiment experiment = loaded(R"(name = "x"
[data]
mnist = "synthetic"
[matrix]
model = ["mlp"]
strategy = ["mp", "given"]
[strategy.given]
kind = "mp"
stage_split = [2, 4]
)");
  CHECK(experiment.runs[0].strategy.boundaries.empty());
  const std::string key = run_key(experiment.runs[1]);
  resolve_data(experiment, {});
  CHECK(experiment.runs[0].strategy.boundaries == Boundaries{3});
  CHECK(experiment.runs[1].strategy.stages == 3);
  CHECK(experiment.runs[1].strategy.boundaries == Boundaries{2, 4});
  CHECK(run_key(experiment.runs[1]) != key);  // because of the data's fingerprint
  CHECK(stages_text(experiment.runs[0]) == "0-2 | 3-5 (88.3 + 11.7 % of the estimated cost)");
  const auto values = values_by_name(experiment.runs[0]);
  CHECK(values.at("stage_split") == Value(std::string("auto")));
  CHECK(values.at("boundaries") == Value(Boundaries{3}));
}

// For 240 words the embedding moves 241 vectors of 300 floats, and a byte costs 4 operations. The last layer
// has 300×2 multiply-adds.
TEST_CASE("the cost of an embedding stage is that of the bytes it moves") {
  Run run = loaded("name = \"x\"\n[matrix]\nmodel = [\"nbow\"]\nstrategy = [\"mp\"]\n").runs.at(0);
  run.data.input = {.image = {}, .classes = 2, .vocabulary = 20'000, .source_length = 240};
  Experiment experiment;
  experiment.runs = {run};
  resolve_stages(experiment);
  CHECK(experiment.runs[0].strategy.boundaries == Boundaries{2});
  CHECK(stages_text(experiment.runs[0]) == "0-1 | 2 (99.9 + 0.1 % of the estimated cost)");
}

TEST_CASE("tensor parts split the cheapest layers, or those of the file, and only then the run key changes") {
  const std::string tensor = start + "strategy = [\"single\", \"tensor\"]\n[strategy.tensor]\n";
  Experiment experiment = loaded(tensor);
  const Strategy& automatic = experiment.runs[1].strategy;
  CHECK(automatic.tensor == 2);
  CHECK(automatic.world_size() == 2);
  CHECK(automatic.parts_of_checkpoint() == 2);
  CHECK(automatic.tensor_split.empty());  // before the data is known
  for (Run& run : experiment.runs) run.data.input = models::input_shape(models::find_dataset("mnist"));
  resolve_stages(experiment);
  CHECK(automatic.tensor_split == Boundaries{1, 3});
  CHECK(experiment.runs[0].strategy.tensor_split.empty());
  CHECK(canonical_work(experiment.runs[0]).find("tensor") == std::string::npos);

  const Run given = loaded(tensor + "tensor = 3\ntensor_split = [1, 5]\n").runs[1];
  CHECK(given.strategy.tensor == 3);
  CHECK(given.strategy.tensor_split == Boundaries{1, 5});
  CHECK(values_by_name(given).at("tensor_split") == Value(Boundaries{1, 5}));
  CHECK(values_by_name(experiment.runs[1]).at("tensor_split") == Value(std::string("auto")));
  CHECK(run_from_json(to_json(given)).strategy == given.strategy);
  CHECK(canonical_work(given).find("\"tensor\":3,\"tensor_split\":[1,5]") != std::string::npos);
  CHECK(run_key(given) != run_key(experiment.runs[1]));

  // A named dimension is the same work as a list of its layers, in both notations.
  const std::string listed =
      canonical_work(loaded(tensor + "tensor = 3\ntensor_split = [1, 3, 5]\n").runs[1]);
  for (const char* split : {"{ width = 3 }", "\"width = 3\""}) {
    CAPTURE(split);
    Experiment named = loaded(tensor + "tensor_split = " + split + "\n");
    CHECK(named.runs[1].strategy.tensor == 3);
    CHECK(values_by_name(named.runs[1]).at("tensor_split") == Value(std::string("width = 3")));
    for (Run& run : named.runs) run.data.input = models::input_shape(models::find_dataset("mnist"));
    resolve_stages(named);
    CHECK(canonical_work(named.runs[1]) == listed);
  }
}

TEST_CASE("tensor parts can have stages and replicas") {
  const std::string tensor = start + "strategy = [\"tensor\"]\n[strategy.tensor]\n";
  const Run plain = loaded(tensor).runs[0], wide = loaded(tensor + "replicas = 2\nstages = 3\n").runs[0];
  CHECK(plain.strategy.micro_batches == 1);
  CHECK(plain.strategy.schedule.empty());
  CHECK(wide.strategy.world_size() == 12);
  CHECK(wide.strategy.micro_batches == 4);
  CHECK(wide.strategy.schedule == "1f1b");
  CHECK(wide.strategy.parts_of_checkpoint() == 6);
}

TEST_CASE("a key that a kind of strategy does not have, or an unsuitable value, is an error at its place") {
  const std::string mp = start + "strategy = [\"mp\"]\n[strategy.mp]\n";
  const std::string tf = start + "strategy = [\"parameter-server\"]\n[strategy.parameter-server]\n";
  const std::string zero = start + "strategy = [\"zero\"]\n[strategy.zero]\n";
  const std::string tensor = start + "strategy = [\"tensor\"]\n[strategy.tensor]\n";
  const std::string distributed =
      start + "strategy = [\"single\", \"ddp\"]\n[defaults]\nsampler = \"distributed\"\n";
  const std::string unequal =
      " cannot be divided equally among 2 replicas, as sampler \"distributed\" requires; give the batch per "
      "replica, or use sampler \"exact\"";
  check_all({
      {mp + "stages = 7",
       "6:10: 7 stages are more than the 6 layers of model \"mlp\"; each needs at least one"},
      {mp + "stages = 1", "6:10: stages of strategy \"mp\" must be >= 2, but is 1"},
      {mp + "stage_split = [4, 4]",
       "6:15: the boundaries of stage_split must be in ascending order, are [4, 4]"},
      {mp + "stage_split = [6]",
       "6:15: stage_split ends at layer 6, but the 6 layers of model \"mlp\" are 0 to 5"},
      {mp + "stages = 3\nstage_split = [3]", "7:15: stage_split has 1 boundaries, but 3 stages need 2"},
      {mp + "stage_split = \"even\"",
       "6:15: stage_split must be a list of 1 to 1023 integers >= 1 or \"auto\", but is \"even\""},
      {mp + "servers = 1",
       "6:11: servers of strategy \"mp\" must be 0, but is 1; strategies with servers are parameter-server"},
      {tf + "servers = 0", "6:11: servers of strategy \"parameter-server\" must be >= 1, but is 0"},
      {tf + "stages = 2", "6:10: stages of strategy \"parameter-server\" must be 1, but is 2"},
      {tf + "staleness = 2",
       "6:13: staleness needs mode = \"async\"; strategy \"parameter-server\" is \"sync\""},
      {mp + "staleness = 2", "6:13: staleness needs mode = \"async\"; strategy \"mp\" is \"mp\""},
      {mp + "mode = \"async\"", "6:8: strategy \"mp\" has no mode; strategies with one are parameter-server"},
      {tf + "mode = \"late\"", "6:8: mode must be one of \"sync\", \"async\", but is \"late\""},
      {tf + "mode = \"async\"\n[defaults]\nsampler = \"distributed\"",
       "8:11: sampler = \"distributed\" needs replicas in step; those of strategy \"parameter-server\" are "
       "asynchronous"},
      {tf + "[defaults]\nprecision = \"float16\"",
       "7:13: servers cannot scale the loss, as float16 requires"},
      {zero + "sharding = \"all\"",
       "6:12: sharding must be one of \"optimizer\", \"gradients\", \"parameters\", but is \"all\""},
      {zero + "replicas = 1", "6:12: replicas of strategy \"zero\" must be >= 2, but is 1"},
      {zero + "stages = 2",
       "6:10: stages of strategy \"zero\" must be 1, but is 2; strategies with stages are"},
      {mp + "sharding = \"gradients\"",
       "6:12: strategy \"mp\" has no sharding; strategies with one are zero"},
      {mp + "tensor = 2",
       "6:10: tensor of strategy \"mp\" must be 1, but is 2; strategies with tensor are tensor"},
      {mp + "tensor_split = [1]",
       "6:16: strategy \"mp\" has no tensor_split; strategies with one are tensor"},
      {tensor + "tensor = 0", "6:10: tensor must be an integer in [1, 1024], but is 0"},
      {tensor + "stages = 1\nstage_split = [3]", "7:15: stage_split has 1 boundaries, but 1 stages need 0"},
      {tensor + "tensor_split = \"widht = 2\"",
       "6:16: \"widht\" is not a key of tensor_split; did you mean \"width\"?"},
      {tensor + "tensor_split = { width = 2, channels = 4 }",
       "6:16: the dimensions of tensor_split must have the same number, because each rank has one part of "
       "each; are width = 2, channels = 4"},
      {tensor + "tensor_split = { widht = 2 }",
       "6:18: \"widht\" is not a key of tensor_split; did you mean \"width\"?"},
      {tensor + "tensor_split = { width = 1 }", "6:26: width must be an integer in [2, 1024], but is 1"},
      {tensor + "tensor_split = { heads = 2 }",
       "6:16: no layer of the model has a dimension heads; its dimensions are width"},
      {tensor + "tensor = 3\ntensor_split = { width = 2 }",
       "7:16: tensor_split has 2 parts, but tensor is 3; leave out tensor"},
      {tensor + "tensor_split = [0]",
       "6:16: layer 0 (flatten) cannot be split; tensor_split may name 1, 3, 5"},
      {tensor + "tensor_split = [1, 6]",
       "6:16: layer 6 is not one of the model's 6 layers; tensor_split may name 1, 3, 5"},
      {tensor + "tensor_split = [3, 1]",
       "6:16: the layers of tensor_split must be in ascending order, are [3, 1]"},
      {tensor + "tensor_split = 1",
       "6:16: tensor_split must be a list of 1 to 1024 integers >= 0 or \"auto\", or a table as { width = 2 "
       "}, "
       "but is 1"},
      {tensor + "tensor = 11\ntensor_split = [5]",
       "7:16: tensor = 11 is more than the 10 outputs of layer 5; use fewer parts, or list other layers in "
       "tensor_split"},
      {tensor + "tensor = 1000", "6:10: no layer has outputs, heads or tokens for tensor = 1000"},
      {mp + "micro_batches = 2",
       "6:17: micro_batches of strategy \"mp\" must be 1, but is 2; strategies with micro_batches"},
      {mp + "schedule = \"gpipe\"",
       "6:12: strategy \"mp\" has no schedule; strategies with one are pipeline, mp-ddp"},
      {start + "strategy = [\"ddp\"]\nstages = [2]",
       "5:11: stages of strategy \"ddp\" must be … but is 2; strategies with stages are mp"},
      {start + "strategy = [\"ddp\"]\n[strategy.ddp]\nstage_split = [2]",
       "6:15: strategy \"ddp\" has no stage_split; strategies with one are mp, pipeline, mp-ddp"},
      {start + "strategy = [\"mp-ddp\"]\nbatch = [7]",
       "5:10: a batch of 7 is too small for 2 replicas x 4…; each needs at least one sample"},
      {start + "strategy = [\"ddp\"]\n[defaults]\ntrain_samples = 1",
       "6:17: 1 train_samples are too few for 2 replicas; each needs at least one"},
      {distributed + "batch = 65", "7:9: a batch of 65" + unequal},
      {start + "[model.mlp]\nvocabulary_max_size = 100",
       "5:23: vocabulary_max_size is a key of texts; data set \"mnist\" has images"},
      {start + "[model.mlp]\nwindow_length = 100",
       "5:17: window_length is a key of windows of a text; data set \"mnist\" has images"},
  });
  CHECK(problem_of(distributed + "batch = \"65 per replica\"\n[compare]\ndiffers = [\"batch\"]").empty());
  CHECK(problem_of(distributed + "batch = 64").empty());
}

TEST_CASE("min_replicas makes ddp elastic, and its default changes no run key") {
  const std::string ddp =
      start + "strategy = [\"ddp\"]\n[defaults]\ncheckpoint = \"epoch\"\n[strategy.ddp]\nreplicas = 4\n";
  const Run plain = loaded(ddp).runs.front();
  const Run elastic = loaded(ddp + "min_replicas = 2\n").runs.front();
  CHECK_FALSE(plain.strategy.min_replicas.has_value());
  CHECK(elastic.strategy.min_replicas == 2);
  CHECK(run_key(loaded(ddp + "min_replicas = 4\n").runs.front()) == run_key(plain));
  CHECK(run_key(elastic) != run_key(plain));
  CHECK(canonical_work(plain).find("min_replicas") == std::string::npos);
  CHECK(run_from_json(to_json(elastic)) == elastic);
}

TEST_CASE("min_replicas is an error if an attempt with fewer replicas would compute something else") {
  const std::string ddp = start + "strategy = [\"ddp\"]\n[strategy.ddp]\nreplicas = 4\nmin_replicas = ";
  const std::string kept = "\n[defaults]\ncheckpoint = \"epoch\"\n";
  check_all({
      {ddp + "5" + kept, "7:16: min_replicas of strategy \"ddp\" must be at most its 4 replicas, but is 5"},
      {ddp + "0" + kept, "7:16: min_replicas must be an integer in [1, 1024], but is 0"},
      {ddp + "2", "7:16: min_replicas needs checkpoint = \"epoch\" in [defaults]"},
      {ddp + "2" + kept + "batch = \"64 per replica\"", "7:16: min_replicas needs a batch over all replicas"},
      {ddp + "2" + kept + "sampler = \"distributed\"", "7:16: min_replicas needs sampler \"exact\""},
      {start + "strategy = [\"mp-ddp\"]\n[strategy.mp-ddp]\nmin_replicas = 1",
       "6:16: min_replicas is a key of ddp; strategy \"mp-ddp\" is mp-ddp"},
  });
  const std::string vgg =
      "name = \"x\"\n[matrix]\nmodel = [\"vgg11\"]\nstrategy = [\"ddp\"]\n[strategy.ddp]\nmin_replicas = 1\n"
      "[defaults]\ncheckpoint = \"epoch\"\n";
  const auto found = problems_of(vgg);
  REQUIRE(found.size() == 1);
  CHECK(contains(found[0], "6:16: warning: min_replicas changes the result a little: batch_norm \"local\""));
  CHECK(problems_of(vgg + "batch_norm = \"sync\"\n").empty());
}

TEST_CASE("a strategy name without a kind, or with the wrong one, is an error at its place") {
  const std::string all =
      "one of \"single\", \"ddp\", \"mp\", \"pipeline\", \"mp-ddp\", \"tensor\", \"parameter-server\", "
      "\"zero\", "
      "\"independent\", \"in-step\"";
  CHECK(problem_of(start + "[strategy.mine]\nreplicas = 3") ==
        "f.toml:4:11: error: there is no strategy \"mine\" (a name of your own needs a command or a kind: " +
            all + ")");
  CHECK(problem_of(start + "[strategy.mine]\nkind = \"dpd\"") ==
        "f.toml:5:8: error: kind must be " + all + ", but is \"dpd\"; did you mean \"ddp\"?");
  CHECK(problem_of(start + "[strategy.ddp]\nkind = \"mp\"") ==
        "f.toml:4:11: error: strategy \"ddp\" has the name of a kind; give a strategy of another kind "
        "another name");
  CHECK(problem_of(start + "strategy = [\"hybird\"]\n[strategy.hybrid]\nkind = \"ddp\"") ==
        "f.toml:4:13: error: there is no strategy \"hybird\"; did you mean \"hybrid\"?");
  CHECK(problem_of(start + "[defaults]\nkind = \"ddp\"") ==
        "f.toml:5:1: error: \"kind\" is not a key of [defaults]; it belongs in [strategy.*]");
}
