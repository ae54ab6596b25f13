// Invalid values, matrices and comparisons, with the exact error line.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/text.h"
#include "experiments/config/machine_keys.h"
#include "experiments/matrix/resolve_run.h"
#include "models/catalogue.h"
#include "tests/experiments/file/loading.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

TEST_CASE("every key of [machine] refuses invalid values and names the allowed ones") {
  CHECK(machine_keys().size() >= 19);
  for (const MachineKey& key : machine_keys()) {
    CAPTURE(key.name);
    const std::string toml = start + "[machine]\n" + key.name + " = 1979-05-27\n";
    const Loaded loaded = load_text(toml, "f.toml");
    CHECK_FALSE(loaded.experiment.has_value());
    REQUIRE_FALSE(loaded.problems.empty());
    const std::string wanted = ": error: " + key.name + " must be " + key.allowed + ", but is a date";
    CHECK(std::ranges::any_of(loaded.problems, [&](const Problem& problem) {
      return to_text(problem) == "f.toml:5:" + std::to_string(key.name.size() + 4) + wanted;
    }));
  }
}

TEST_CASE("values of a wrong type, out of range or not numeric are errors") {
  const auto line = [](const std::string& text) { return start + "[defaults]\n" + text; };
  check_all({
      {line("epochs = 0"), "f.toml:5:10: error: epochs must be an integer in [1, 1000000], but is 0"},
      {line("epochs = 1.5"), "f.toml:5:10: error: epochs must be an integer in [1, 1000000], but is 1.5"},
      {line("epochs = [5]"), "f.toml:5:10: error: epochs must be an integer in [1, 1000000], but is [5]"},
      {line("epochs = 1979-05-27"),
       "f.toml:5:10: error: epochs must be an integer in [1, 1000000], but is a date"},
      {line("epochs = { n = 1 }"),
       "f.toml:5:10: error: epochs must be an integer in [1, 1000000], but is a table"},
      {line("learning_rate = nan"), "f.toml:5:17: error: learning_rate must be a number > 0, but is nan"},
      {line("learning_rate = inf"), "f.toml:5:17: error: learning_rate must be a number > 0, but is inf"},
      {line("learning_rate = 0"), "f.toml:5:17: error: learning_rate must be a number > 0, but is 0"},
      {line("momentum = 1.0"), "f.toml:5:12: error: momentum must be a number in [0, 1), but is 1.0"},
      {line("weight_decay = -1e-9"), "f.toml:5:16: error: weight_decay must be a number >= 0, but is -1e-9"},
      {line("optimizer = \"adaw\""),
       "f.toml:5:13: error: optimizer must be one of \"sgd\", \"adam\", \"adamw\", but is \"adaw\"; did you "
       "mean "
       "\"adam\"?"},
      {line("learning_rate_schedule = \"cos\""),
       "f.toml:5:26: error: learning_rate_schedule must be one of \"constant\", \"step\", \"cosine\", but is "
       "\"cos\""},
      {line("clip_norm = -1"), "f.toml:5:13: error: clip_norm must be a number >= 0, but is -1"},
      {line("vocabulary_max_size = 4"),
       "f.toml:5:23: error: vocabulary_max_size must be an integer in [5, 1000000], but is 4"},
      {line("dataset = \"mnits\""),
       "f.toml:5:11: error: dataset must be one of \"mnist\", \"fashion-mnist\", \"cifar10\", "
       "\"imdb\", \"multi30k\", \"tiny-shakespeare\", \"folder\", \"synthetic-digits\", "
       "\"synthetic-color-digits\", "
       "\"synthetic-reviews\", \"synthetic-phrases\", \"synthetic-prose\", but is \"mnits\"; did you mean "
       "\"mnist\"?"},
      {line("seed = -1"), "f.toml:5:8: error: seed must be an integer >= 0, but is -1"},
      {line("train_samples = 0"), "f.toml:5:17: error: train_samples must be an integer >= 1, but is 0"},
      {line("hidden = [0]"),
       "f.toml:5:10: error: hidden must be a list of at most 16 integers in [1, 65536], but is [0]"},
      {line("data_split = [0.5, 0.5]"),
       "f.toml:5:14: error: data_split must be a list of 3 numbers in (0, 1), but is [0.5, 0.5]"},
      {line("data_split = [0.5, 0.5, 0]"),
       "f.toml:5:14: error: data_split must be a list of 3 numbers in (0, 1), but is [0.5, 0.5, 0.0]"},
      {line("data_split = [0.5, 0.25, 0.5]"), "f.toml:5:14: error: data_split must sum to 1, sums to 1.25"},
      {line("batch = { size = 4, per = \"rank\" }"),
       "f.toml:5:27: error: per must be one of \"global\", \"replica\", but is \"rank\""},
      {line("batch = \"64 per rank\""),
       "f.toml:5:9: error: batch must be an integer in [1, 1000000000] or { size = n, per = \"global\" | "
       "\"replica\" }, but is \"64 per rank\""},
      {line("batch = { per = \"global\" }"),
       "f.toml:5:9: error: batch has no size; add it, as in { size = 128, per = \"global\" }"},
      {line("batch = { size = 0 }"),
       "f.toml:5:18: error: batch must be an integer in [1, 1000000000], but is 0"},
      {line("batch = { siez = 1, size = 2 }"),
       "f.toml:5:11: error: \"siez\" is not a key of batch; did you mean \"size\"?"},
  });
}

TEST_CASE("invalid matrices are errors") {
  const std::string name = "name = \"x\"\n";
  check_all({
      {name + "matrix = 3", "f.toml:2:10: error: [matrix] must be a table, but is 3"},
      {name + "[matrix]\nmodel = \"mlp\"",
       "f.toml:3:9: error: model must be a list of alternatives, but is \"mlp\""},
      {name + "[matrix]\nmodel = []", "f.toml:3:9: error: model must be a list of alternatives, but is []"},
      {name + "[matrix]\nseed = [0]",
       "f.toml:2:1: error: the matrix has no model; add one, as in model = [\"mlp\"]"},
      {name + "[defaults]\nepochs = 1",
       "f.toml:1:1: error: the experiment has no runs; list alternatives in [matrix], as in model = "
       "[\"mlp\"]"},
      {start + "strategy = [\"fsdp\"]",
       "f.toml:4:13: error: there is no strategy \"fsdp\"; choose from single, ddp, mp, pipeline, mp-ddp, "
       "independent"},
      {start + "seed = 3",
       "f.toml:4:8: error: seed must be a list of alternatives or { count = n }, but is 3"},
      {start + "seed = { count = 0 }",
       "f.toml:4:18: error: count must be an integer in [1, 100000], but is 0"},
      {start + "seed = {}", "f.toml:4:8: error: seed must be a list of seeds or { count = n }"},
      {start + "seed = { cuont = 3 }",
       "f.toml:4:10: error: \"cuont\" is not a key of seed; did you mean \"count\"?"},
      {start + "batch = [64, 128, 64]", "f.toml:4:19: error: batch has 64 twice"},
      {start + "learning_rate = [1, 1.0]", "f.toml:4:21: error: learning_rate has 1.0 twice"},
      {start + "batch = [64]\nzip = [{ batch = [1, 2], epochs = [1, 2] }]",
       "f.toml:5:10: error: batch is already an axis of the matrix"},
      {start + "zip = [{ batch = [1, 2], epochs = [1, 2, 3] }]",
       "f.toml:4:26: error: the lists of a zip must have equal lengths: epochs has length 3, batch has "
       "length 2"},
      {start + "zip = [{}]",
       "f.toml:4:8: error: a zip must be a table of lists of equal length, but is empty"},
      {start + "zip = { batch = [1] }",
       "f.toml:4:7: error: zip must be a list of tables, as in [{ learning_rate = [0.1, 0.01], batch = [128, "
       "64] }], "
       "but is a table"},
      {name + "[matrix]\nmodel = [\"mlp\", \"cnn\"]\nchannels = [[1, 2]]",
       "f.toml:4:1: error: channels is not a key of model \"mlp\", which is in the matrix; set it in the "
       "[model.*] tables of models that have it"},
      {start + "seed = { count = 100000 }\nbatch = [1, 2]",
       "f.toml:2:1: error: 200000 runs are too many; at most 100000 are allowed"},
      {start + "[[exclude]]\nmodel = \"mlp\"",
       "f.toml:2:1: error: the experiment has no runs; [[exclude]] removes all of them"},
      {start + "[exclude]\nmodel = \"mlp\"",
       "f.toml:4:1: error: exclude must be written as [[exclude]], once per row"},
      {start + "[[exclude]]\nmodle = \"mlp\"",
       "f.toml:5:1: error: \"modle\" is not a key of [[exclude]]; did you mean \"model\"?"},
      {start + "[[include]]", "f.toml:4:1: error: [[include]] must be a table of values, but is empty"},
      {start + "seed = [0, 1]\n[[include]]\nmodel = \"cnn\"",
       "f.toml:5:1: error: [[include]] must set seed, because the matrix has 2 values of it"},
      {name + "[matrix]\nmodel = [\"seq2seq\"]\nseed = [0]\n[model.seq2seq]\ndataset = \"cifar10\"\n"
              "[[include]]\nseed = 1",
       "f.toml:6:11: error: model \"seq2seq\" cannot be trained on \"cifar10\", only on multi30k, "
       "synthetic-phrases"},
      {name + "[[include]]\nseed = 1", "f.toml:2:1: error: [[include]] must set model"},
      {start + "[[include]]\nchannels = [1, 2]",
       "f.toml:5:12: error: channels is not a key of model \"mlp\""},
      {start + "[[include]]\nepochs = 10",
       "f.toml:4:1: error: the run \"mlp single seed 0 epochs=10\" does the same work as \"mlp single seed "
       "0\"; leave one out with [[exclude]]"},
      {start + "zip = [{ batch = [1, 1, 1], epochs = [1, 1, 1] }]",
       "f.toml:2:1: error: the run \"mlp single seed 0 batch=1 epochs=1\" does the same work as \"mlp single "
       "seed 0 batch=1 epochs=1\"; leave one out with [[exclude]] (1 more like it)"},
  });
}

TEST_CASE("an invalid value of an included row is one error, not also a missing value or an equal run") {
  const std::string name = "name = \"x\"\n", seeds = start + "seed = [0, 1]\n";
  check_all({
      {seeds + "[[include]]\nmodel = \"cnn\"\nseed = -1",
       "f.toml:7:8: error: seed must be an integer >= 0, but is -1"},
      {start + "seed = [0]\n[[include]]\nseed = -1",
       "f.toml:6:8: error: seed must be an integer >= 0, but is -1"},
      {start + "[[include]]\nepochs = 0",
       "f.toml:5:10: error: epochs must be an integer in [1, 1000000], but is 0"},
      {name + "[[include]]\nmodel = \"lenet\"\nseed = 1", "f.toml:3:9: error: model must be one of \"" +
                                                              joined(models::model_names(), {}, "\", \"") +
                                                              "\", but is \"lenet\""},
      {seeds + "[[include]]\nmodel = \"cnn\"\nepochs = 0",
       "f.toml:5:1: error: [[include]] must set seed, because the matrix has 2 values of it\n"
       "f.toml:7:10: error: epochs must be an integer in [1, 1000000], but is 0"},
  });
}

TEST_CASE("huge products are counted without being expanded, and do not overflow") {
  std::string axis = "[1";
  for (int i = 2; i <= 1000; ++i) axis += ", " + std::to_string(i);
  axis += "]\n";
  std::string toml = start;
  for (const char* name :
       {"batch", "epochs", "train_samples", "threads", "seed", "replicas", "learning_rate", "weight_decay"})
    toml += name + (" = " + axis);
  const auto problems = problems_of(toml);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].starts_with("f.toml:2:1: error: 4611686018427387904 runs are too many"));
}

TEST_CASE("combinations that cannot be trained are errors") {
  check_all({
      {start + "strategy = [\"ddp\"]\n[strategy.ddp]\nreplicas = 1",
       "f.toml:6:12: error: replicas of strategy \"ddp\" must be >= 2, but is 1"},
      {start + "strategy = [\"single\"]\nreplicas = [2]",
       "f.toml:5:13: error: replicas of strategy \"single\" must be 1, but is 2; strategies with replicas "
       "are "
       "ddp, "
       "mp-ddp, independent"},
      {start + "strategy = [\"ddp\"]\nbatch = [1]",
       "f.toml:5:10: error: a batch of 1 is too small for 2 replicas; each needs at least one sample"},
      {start + "strategy = [\"ddp\"]\nreplicas = [200]",
       "f.toml:5:13: error: a batch of 128 is too small for 200 replicas; each needs at least one sample"},
      {"name = \"x\"\n[matrix]\nmodel = [\"cnn\"]\n[defaults]\nhidden = [1, 2]",
       "f.toml:5:10: error: hidden of model \"cnn\" must be a list of 1 integer in [1, 65536], but is [1, "
       "2]"},
  });
  models::Model words;
  words.name = "nbow";
  words.datasets = {"imdb", "reviews"};
  CHECK(dataset_problem(words, "mnist") ==
        "model \"nbow\" cannot be trained on \"mnist\", only on imdb, reviews");
  CHECK(dataset_problem(words, "reviews").empty());
}

TEST_CASE("invalid comparisons, machines and data are errors") {
  const std::string both = start + "strategy = [\"single\", \"ddp\"]\n";
  const auto compare = [&](const std::string& text) { return both + "[compare]\n" + text; };
  check_all({
      {compare("axis = \"strategies\""),
       "f.toml:6:8: error: axis must be the name of an axis or a key, but is \"strategies\"; did you mean "
       "\"strategy\"?"},
      {compare("baseline = \"sngle\""),
       "f.toml:6:12: error: baseline \"sngle\" is not a value of strategy; choose from single, ddp"},
      {compare("axis = \"batch\""),
       "f.toml:5:1: error: the comparison of batch has no baseline; choose from 128"},
      {compare("axis = \"train_samples\"\nbaseline = 3"),
       "f.toml:5:1: error: no run has a value of the axis train_samples"},
      {compare("baseline = [[1]]"),
       "f.toml:6:12: error: baseline must be a value of the axis, but is a list"},
      {compare("pair = \"seed\""),
       "f.toml:6:8: error: pair must be a list of axis names, as in [\"seed\"], but is \"seed\""},
      {compare("pair = [\"sede\"]"),
       "f.toml:6:9: error: pair must be the name of an axis or a key, but is \"sede\"; did you mean "
       "\"seed\"?"},
      {compare("pair = [\"strategy\"]"),
       "f.toml:5:1: error: pair has \"strategy\", which is the compared axis; remove it"},
      {compare("differs = [\"epochs\", \"epochs\"]"), "f.toml:6:22: error: differs has \"epochs\" twice"},
      {compare("margins = { time = 1 }"), "f.toml:6:20: error: time must be a number > 1, but is 1"},
      {compare("margins = { loss = { ratio = 0.98 } }"),
       "f.toml:6:30: error: ratio must be a number > 1, but is 0.98"},
      {compare("margins = { loss = { absolute = -1 } }"),
       "f.toml:6:33: error: absolute must be a number >= 0, but is -1"},
      {compare("margins = { accuracy = 1 }"),
       "f.toml:6:13: error: \"accuracy\" is not a key of margins; choose from time, loss, accuracy_points"},
      {compare("alpha = 0"), "f.toml:6:9: error: alpha must be a number in (0, 0.5], but is 0"},
      {compare("final = \"yes\""), "f.toml:6:9: error: final must be true or false, but is \"yes\""},
      {compare("base = \"single\""),
       "f.toml:6:1: error: \"base\" is not a key of [compare]; choose from axis, baseline, pair, margins, "
       "alpha, final, "
       "differs"},
      {start + "[machine]\ndevices = 0",
       "f.toml:5:11: error: devices must be an integer >= 1 or \"auto\", but is 0"},
      {start + "[machine]\ndevices = \"all\"",
       "f.toml:5:11: error: devices must be an integer >= 1 or \"auto\", but is \"all\""},
      {start + "[machine]\nexclusive = true",
       "f.toml:5:13: error: exclusive must be one of \"host\", \"devices\", but is true"},
      {start + "[data]\nmnits = \"x\"",
       "f.toml:5:1: error: there is no data set \"mnits\"; did you mean \"mnist\"?"},
      {start + "[data]\nmnist = \"a\\u0000b\"",
       "f.toml:5:9: error: mnist must be a folder or \"synthetic\", but is \"a\\u0000b\""},
      {"published = \"a\\u0000b\"\n" + start,
       "f.toml:1:13: error: published must be the name of a TOML file with published numbers, but is "
       "\"a\\u0000b\""},
      {start + "[data]\nmnist = 3", "f.toml:5:9: error: mnist must be a folder or \"synthetic\", but is 3"},
      {start + "[data]\nsynthetic-digits = \"x\"",
       "f.toml:5:20: error: synthetic-digits is generated and has no folder; remove this line"},
  });
}
