// Invalid values, matrices and comparisons, with the places and the words of their errors.
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
      {line("epochs = 0"), "5:10: epochs must be an integer in [1, 1000000], but is 0"},
      {line("epochs = 1.5"), "5:10: epochs must be an integer in [1, 1000000], but is 1.5"},
      {line("epochs = [5]"), "5:10: epochs must be an integer in [1, 1000000], but is [5]"},
      {line("epochs = 1979-05-27"), "5:10: epochs must be an integer in [1, 1000000], but is a date"},
      {line("epochs = { n = 1 }"), "5:10: epochs must be an integer in [1, 1000000], but is a table"},
      {line("learning_rate = nan"), "5:17: learning_rate must be a number > 0, but is nan"},
      {line("learning_rate = inf"), "5:17: learning_rate must be a number > 0, but is inf"},
      {line("learning_rate = 0"), "5:17: learning_rate must be a number > 0, but is 0"},
      {line("momentum = 1.0"), "5:12: momentum must be a number in [0, 1), but is 1.0"},
      {line("weight_decay = -1e-9"), "5:16: weight_decay must be a number >= 0, but is -1e-9"},
      {line("optimizer = \"adaw\""), "5:13: optimizer must be … but is \"adaw\"; did you mean \"adam\"?"},
      {line("learning_rate_schedule = \"cos\""), "5:26: learning_rate_schedule must be … but is \"cos\""},
      {line("clip_norm = -1"), "5:13: clip_norm must be a number >= 0, but is -1"},
      {line("vocabulary_max_size = 4"),
       "5:23: vocabulary_max_size must be an integer in [5, 1000000], but is 4"},
      {line("dataset = \"mnits\""), "5:11: dataset must be … but is \"mnits\"; did you mean \"mnist\"?"},
      {line("seed = -1"), "5:8: seed must be an integer >= 0, but is -1"},
      {line("train_samples = 0"), "5:17: train_samples must be an integer >= 1, but is 0"},
      {line("hidden = [0]"), "5:10: hidden must be a list of at most 16 integers in [1, 65536], but is [0]"},
      {line("data_split = [0.5, 0.5]"),
       "5:14: data_split must be a list of 3 numbers in (0, 1), but is [0.5, 0.5]"},
      {line("data_split = [0.5, 0.5, 0]"),
       "5:14: data_split must be a list of 3 numbers in (0, 1), but is [0.5, 0.5, 0.0]"},
      {line("data_split = [0.5, 0.25, 0.5]"), "5:14: data_split must sum to 1, sums to 1.25"},
      {line("batch = { size = 4, per = \"rank\" }"),
       "5:27: per must be one of \"global\", \"replica\", but is \"rank\""},
      {line("batch = \"64 per rank\""), "5:9: batch must be … but is \"64 per rank\""},
      {line("batch = { per = \"global\" }"),
       "5:9: batch has no size; add it, as in { size = 128, per = \"global\" }"},
      {line("batch = { size = 0 }"), "5:18: batch must be an integer in [1, 1000000000], but is 0"},
      {line("batch = { siez = 1, size = 2 }"),
       "5:11: \"siez\" is not a key of batch; did you mean \"size\"?"},
  });
}

TEST_CASE("invalid matrices are errors") {
  const std::string name = "name = \"x\"\n";
  check_all({
      {name + "matrix = 3", "2:10: [matrix] must be a table, but is 3"},
      {name + "[matrix]\nmodel = \"mlp\"", "3:9: model must be a list of alternatives, but is \"mlp\""},
      {name + "[matrix]\nmodel = []", "3:9: model must be a list of alternatives, but is []"},
      {name + "[matrix]\nseed = [0]", "2:1: the matrix has no model; add one, as in model = [\"mlp\"]"},
      {name + "[defaults]\nepochs = 1",
       "1:1: the experiment has no runs; list alternatives in [matrix], as in model = [\"mlp\"]"},
      {start + "strategy = [\"fsdp\"]",
       "4:13: there is no strategy \"fsdp\"; choose from single, ddp, mp, pipeline, mp-ddp"},
      {start + "seed = 3",
       "4:8: seed must be a list of alternatives or { count = n } or { min = n, max = m }, but is 3"},
      {start + "seed = { count = 0 }", "4:18: count must be an integer in [1, 100000], but is 0"},
      {start + "seed = {}", "4:8: seed must be a list of seeds, { count = n } or { min = n, max = m }"},
      {start + "seed = { cuont = 3 }", "4:10: \"cuont\" is not a key of seed; did you mean \"count\"?"},
      {start + "batch = [64, 128, 64]", "4:19: batch has 64 twice"},
      {start + "learning_rate = [1, 1.0]", "4:21: learning_rate has 1.0 twice"},
      {start + "batch = [64]\nzip = [{ batch = [1, 2], epochs = [1, 2] }]",
       "5:10: batch is already an axis of the matrix"},
      {start + "zip = [{ batch = [1, 2], epochs = [1, 2, 3] }]",
       "4:26: the lists of a zip must have equal lengths: epochs has length 3, batch has length 2"},
      {start + "zip = [{}]", "4:8: a zip must be a table of lists of equal length, but is empty"},
      {start + "zip = { batch = [1] }", "4:7: zip must be … but is a table"},
      {name + "[matrix]\nmodel = [\"mlp\", \"cnn\"]\nchannels = [[1, 2]]",
       "4:1: channels is not a key of model \"mlp\", which is…; set it in the [model.*] tables"},
      {start + "seed = { count = 100000 }\nbatch = [1, 2]",
       "2:1: 200000 runs are too many; at most 100000 are allowed"},
      {start + "[[exclude]]\nmodel = \"mlp\"",
       "2:1: the experiment has no runs; [[exclude]] removes all of them"},
      {start + "[exclude]\nmodel = \"mlp\"", "4:1: exclude must be written as [[exclude]], once per row"},
      {start + "[[exclude]]\nmodle = \"mlp\"",
       "5:1: \"modle\" is not a key of [[exclude]]; did you mean \"model\"?"},
      {start + "[[include]]", "4:1: [[include]] must be a table of values, but is empty"},
      {start + "seed = [0, 1]\n[[include]]\nmodel = \"cnn\"",
       "5:1: [[include]] must set seed, because the matrix has 2 values of it"},
      {name + "[matrix]\nmodel = [\"seq2seq\"]\nseed = [0]\n[model.seq2seq]\ndataset = \"cifar10\"\n"
              "[[include]]\nseed = 1",
       "6:11: model \"seq2seq\" cannot be trained on \"cifar10\", only on multi30k"},
      {name + "[[include]]\nseed = 1", "2:1: [[include]] must set model"},
      {start + "[[include]]\nchannels = [1, 2]", "5:12: channels is not a key of model \"mlp\""},
      {start + "[[include]]\nepochs = 10",
       "4:1: the run \"mlp single seed 0 epochs=10\" does the…; leave one out with [[exclude]]"},
      {start + "zip = [{ batch = [1, 1, 1], epochs = [1, 1, 1] }]",
       "2:1: the run \"mlp single seed 0 batch=1 epochs=1\"… (1 more like it)"},
  });
}

TEST_CASE("an invalid value of an included row is one error, not also a missing value or an equal run") {
  const std::string name = "name = \"x\"\n", seeds = start + "seed = [0, 1]\n";
  check_all({
      {seeds + "[[include]]\nmodel = \"cnn\"\nseed = -1", "7:8: seed must be an integer >= 0, but is -1"},
      {start + "seed = [0]\n[[include]]\nseed = -1", "6:8: seed must be an integer >= 0, but is -1"},
      {start + "[[include]]\nepochs = 0", "5:10: epochs must be an integer in [1, 1000000], but is 0"},
      {name + "[[include]]\nmodel = \"lenet\"\nseed = 1",
       "3:9: model must be one of \"" + joined(models::model_names(), {}, "\", \"") + "\", but is \"lenet\""},
      {seeds + "[[include]]\nmodel = \"cnn\"\nepochs = 0",
       "5:1: [[include]] must set seed, because the matrix has 2 values of it\n7:10: epochs must be an "
       "integer in [1, 1000000], but is 0"},
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
       "6:12: replicas of strategy \"ddp\" must be >= 2, but is 1"},
      {start + "strategy = [\"single\"]\nreplicas = [2]",
       "5:13: replicas of strategy \"single\" must be 1, but is 2; strategies with replicas"},
      {start + "strategy = [\"ddp\"]\nbatch = [1]",
       "5:10: a batch of 1 is too small for 2 replicas; each needs at least one sample"},
      {start + "strategy = [\"ddp\"]\nreplicas = [200]",
       "5:13: a batch of 128 is too small for 200 replicas; each needs at least one sample"},
      {"name = \"x\"\n[matrix]\nmodel = [\"cnn\"]\n[defaults]\nhidden = [1, 2]",
       "5:10: hidden of model \"cnn\" must be a list of 1 integer in [1, 65536], but is [1, 2]"},
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
       "6:8: axis must be … but is \"strategies\"; did you mean \"strategy\"?"},
      {compare("baseline = \"sngle\""),
       "6:12: baseline \"sngle\" is not a value of strategy; choose from single, ddp"},
      {compare("axis = \"batch\""), "5:1: the comparison of batch has no baseline; choose from 128"},
      {compare("axis = \"train_samples\"\nbaseline = 3"),
       "5:1: no run has a value of the axis train_samples"},
      {compare("baseline = [[1]]"), "6:12: baseline must be a value of the axis, but is a list"},
      {compare("pair = \"seed\""),
       "6:8: pair must be a list of axis names, as in [\"seed\"], but is \"seed\""},
      {compare("pair = [\"sede\"]"),
       "6:9: pair must be the name of an axis or a key, but is \"sede\"; did you mean \"seed\"?"},
      {compare("pair = [\"strategy\"]"), "5:1: pair has \"strategy\", which is the compared axis; remove it"},
      {compare("differs = [\"epochs\", \"epochs\"]"), "6:22: differs has \"epochs\" twice"},
      {compare("margins = { time = 1 }"), "6:20: time must be a number > 1, but is 1"},
      {compare("margins = { loss = { ratio = 0.98 } }"), "6:30: ratio must be a number > 1, but is 0.98"},
      {compare("margins = { loss = { absolute = -1 } }"), "6:33: absolute must be a number >= 0, but is -1"},
      {compare("margins = { accuracy = 1 }"),
       "6:13: \"accuracy\" is not a key of margins; choose from time, loss, accuracy_points"},
      {compare("alpha = 0"), "6:9: alpha must be a number in (0, 0.5], but is 0"},
      {compare("base = \"single\""),
       "6:1: \"base\" is not a key of [compare]; choose from axis, baseline, pair, margins"},
      {start + "[machine]\ndevices = 0", "5:11: devices must be an integer >= 1 or \"auto\", but is 0"},
      {start + "[machine]\ndevices = \"all\"",
       "5:11: devices must be an integer >= 1 or \"auto\", but is \"all\""},
      {start + "[machine]\nexclusive = true",
       "5:13: exclusive must be one of \"host\", \"devices\", but is true"},
      {start + "[data]\nmnits = \"x\"", "5:1: there is no data set \"mnits\"; did you mean \"mnist\"?"},
      {start + "[data]\nmnist = \"a\\u0000b\"",
       "5:9: mnist must be a folder or \"synthetic\", but is \"a\\u0000b\""},
      {"published = \"a\\u0000b\"\n" + start, "1:13: published must be … but is \"a\\u0000b\""},
      {start + "[data]\nmnist = 3", "5:9: mnist must be a folder or \"synthetic\", but is 3"},
      {start + "[data]\nsynthetic-digits = \"x\"",
       "5:20: synthetic-digits is generated and has no folder; remove this line"},
  });
}
