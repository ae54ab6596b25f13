// Invalid experiment files: each kind with the place and the words of its error.
#include <doctest/doctest.h>

#include "base/named_row.h"
#include "experiments/config/toml_tree.h"
#include "experiments/matrix/expand.h"
#include "models/catalogue.h"
#include "tests/experiments/file/loading.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

TEST_CASE("invalid TOML is an error at its place") {
  check_all({
      {"name = \"x", "1:10: not TOML: parsing string: encountered end-of-file"},
      {"name = \"x\"\nname = \"y\"",
       "2:8: not TOML: parsing key-value pair: cannot redefine existing string 'name'"},
      {"a = 1\n" + std::string("b.") + std::string(40, '.'),
       "2:3: not TOML: parsing key: expected bare key starting character or string delimiter, saw"},
  });
  std::string deep = "[a";
  for (int i = 0; i < 300'000; ++i) deep += ".a";
  CHECK(problems_of(deep + "]") ==
        std::vector<std::string>{"f.toml:1:65: error: a key has more than 32 parts"});
  CHECK(problems_of("a = " + std::string(200'000, '[')).size() == 1);
}

TEST_CASE("an unreadable file, or one larger than 1 MiB, is an error without further checks") {
  const tests::ScratchFolder folder;
  const std::string missing = (folder / "missing.toml").string();
  const Loaded none = load(missing);
  REQUIRE(none.problems.size() == 1);
  CHECK(to_text(none.problems[0]) == missing + ": error: cannot be read: No such file or directory");
  CHECK(load(folder.path()).problems.at(0).message.starts_with("cannot be read: "));
  tests::write_text(folder / "large.toml", std::string(max_file_bytes + 1, '#'));
  const Loaded large = load(folder / "large.toml");
  REQUIRE(large.problems.size() == 1);
  CHECK(large.problems[0].message == "cannot be read: it is larger than 1 MiB");
  std::string full = start + "#";
  full.resize(max_file_bytes, '#');
  CHECK(problems_of(full).empty());
}

TEST_CASE("invalid names and seeds of an experiment are errors") {
  const std::string rest = "\n[matrix]\nmodel = [\"mlp\"]\n";
  const std::string allowed =
      "name must be 1 to 80 characters of A-Z a-z 0-9 space _ . - and must not begin with space . - "
      "(a folder has this name), but is ";
  check_all({
      {"[matrix]\nmodel = [\"mlp\"]",
       "1:1: the experiment has no name; add one, as in name = \"first sweep\""},
      {"name = \"a/b\"" + rest, "1:8: " + allowed + "\"a/b\""},
      {"name = \"\"" + rest, "1:8: " + allowed + "\"\""},
      {"name = \"..\"" + rest, "1:8: " + allowed + "\"..\""},
      {"name = \"" + std::string(5000, 'a') + "\"" + rest,
       "1:8: " + allowed + "\"" + std::string(118, 'a') + "…"},
      {"name = \"-rf\"" + rest, "1:8: " + allowed + "\"-rf\""},
      {"name = \" x\"" + rest, "1:8: " + allowed + "\" x\""},
      {"name = 3" + rest, "1:8: " + allowed + "3"},
      {"name = \"x\"\ndata_seed = -1" + rest, "2:13: data_seed must be an integer >= 0, but is -1"},
      {"name = \"x\"\ndata_seed = 1.5" + rest, "2:13: data_seed must be an integer >= 0, but is 1.5"},
  });
  CHECK(problems_of("name = \"" + std::string(80, 'n') + "\"" + rest).empty());
  CHECK(problems_of("name = \"" + std::string(81, 'n') + "\"" + rest).size() == 1);
}

TEST_CASE("unknown keys, and keys in the wrong place, are errors") {
  const std::string advice = "; run `trainyard list keys` to see all keys";
  check_all({
      {start + "[mtrix]", "4:2: \"mtrix\" is not a key of the file; did you mean \"matrix\"?"},
      {"epochs = 3\n" + start,
       "1:1: \"epochs\" is not a key of the file; it belongs in [defaults], [model.*]"},
      {start + "[defaults]\nepoch = 3",
       "5:1: \"epoch\" is not a key of [defaults]; did you mean \"epochs\"?"},
      {start + "[defaults]\nquantised = true", "5:1: \"quantised\" is not a key of [defaults]" + advice},
      {start + "[defaults]\nmodel = \"mlp\"",
       "5:1: \"model\" is not a key of [defaults]; it belongs in [matrix]"},
      {start + "[defaults]\nreplicas = 2",
       "5:1: \"replicas\" is not a key of [defaults]; it belongs in [strategy.*] or [matrix]"},
      {start + "[defaults]\nchannels = [1, 2]",
       "5:1: \"channels\" is not a key of [defaults]; it belongs in [model.*], [defaults]"},
      {start + "[model.resnet]", "4:8: there is no model \"resnet\"" +
                                     name_advice("resnet", models::model_names()) +
                                     "; a model of your own needs a title"},
      {start + "[model.nlp]", "4:8: there is no model \"nlp\"; did you mean \"mlp\"?"},
      {start + "[model.mlp]\n\"a\\nb\" = 1", "5:1: \"a\\nb\" is not a key of [model.mlp]" + advice},
      {start + "[strategy.sngle]", "4:11: there is no strategy \"sngle\" …; did you mean \"single\"?"},
      {start + "[strategy.ddp]\ncommand = [\"x\"]",
       "4:11: strategy \"ddp\" is one of trainyard's; give a strategy with a command another name"},
      {start + "[machine]\nspool = \"/x\"",
       "5:1: spool needs launcher = \"slurm\" or \"mpi\", but the launcher is \"local\""},
      {start + "[machine]\nlaunchr = \"slurm\"",
       "5:1: \"launchr\" is not a key of [machine]; did you mean \"launcher\"?"},
      {start + "[machine]\nlauncher = \"slurm\"\npartition = \"--wrap=x\"",
       "6:13: partition must be a text, but is \"--wrap=x\""},
      {start + "[machine]\nlauncher = \"slurm\"\noptions = [\"--mem=4G\", \"--job-na=x\"]",
       "6:24: \"--job-na=x\" is set by trainyard; remove it from options"},
      {start + "[machine]\nlauncher = \"slurm\"\noptions = [\"rm -rf\"]",
       "6:12: an option of sbatch must be \"--name\" or \"--name=value\", but is \"rm -rf\""},
      {start + "[machine]\nlauncher = \"mpi\"\noptions = [\"-np\", \"3\"]",
       "6:12: \"-np\" is set by trainyard; remove it from options"},
      {start + "[machine]\nlauncher = \"mpi\"\noptions = [1]",
       "6:11: options must be a list of texts, but is [1]"},
      {start + "[machine]\nlauncher = \"slurm\"\ntime_limit = \"soon\"",
       "6:14: time_limit must be \"MINUTES\", \"H:MM:SS\" or \"D-HH:MM:SS\", but is \"soon\""},
      {start + "[machine]\nlauncher = \"mpi\"\nexclusive = \"devices\"",
       "6:13: exclusive must be \"host\" if launcher = \"mpi\": mpirun does not share hosts"},
      {start + "[machine]\nlauncher = \"slurm\"\ninterface = \"ib0; id\"",
       "6:13: interface must be the name of a network interface, but is \"ib0; id\""},
      {start + "[machine]\ninterface = \"ib0\"",
       "5:1: interface needs launcher = \"slurm\" or \"mpi\", but the launcher is \"local\""},
      {start + "[machine]\naccelerator = \"gpu\"",
       "5:15: accelerator must be one of \"auto\", \"cpu\", \"cuda\", but is \"gpu\""},
      {start + "[machine]\naccelerator = \"cpu\"\ncommunicator = \"nccl\"",
       "6:16: communicator \"nccl\" needs GPUs, but accelerator is \"cpu\""},
      {start + "[machine]\naccelerator = \"cpu\"\nlauncher = \"slurm\"\ngpus_per_task = 1",
       "7:1: gpus_per_task needs GPUs, but accelerator is \"cpu\""},
      {start + "quantised = [1]\n", "4:1: \"quantised\" is not a key of [matrix]" + advice},
  });
}

TEST_CASE("all problems of a file are reported, in the order of the file") {
  const auto problems = problems_of(R"(name = "x"
[matrix]
model = ["mlp", "resnet"]
batch = [0, 64]
[defaults]
epoch = 3
[strategy.mine]
[compare]
alpha = 2
)");
  REQUIRE(problems.size() == 5);
  CHECK(problems[0].starts_with("f.toml:3:17: error: model must be one of"));
  CHECK(problems[1].starts_with("f.toml:4:10: error: batch must be"));
  CHECK(problems[2].starts_with("f.toml:6:1: error: \"epoch\""));
  CHECK(problems[3].starts_with("f.toml:7:11: error: there is no strategy"));
  CHECK(problems[4].starts_with("f.toml:9:9: error: alpha must be"));
}

TEST_CASE("unusual but valid settings are warnings") {
  const Loaded unused = load_text(start + "[[exclude]]\nmodel = \"cnn\"", "f.toml");
  REQUIRE(unused.problems.size() == 1);
  CHECK(to_text(unused.problems[0]) == "f.toml:4:1: warning: [[exclude]] matches no run of the matrix");
  CHECK(unused.experiment.has_value());
  const Loaded momentum = load_text(start + "[model.mlp]\noptimizer = \"adam\"\nmomentum = 0.5", "f.toml");
  REQUIRE(momentum.problems.size() == 1);
  CHECK(to_text(momentum.problems[0]) == "f.toml:6:12: warning: momentum is not used by adam");
  const Loaded alone = load_text(start + "[compare]\n", "f.toml");
  REQUIRE(alone.problems.size() == 1);
  CHECK(to_text(alone.problems[0]) ==
        "f.toml:4:1: warning: nothing is compared: all runs have the same strategy");
}

TEST_CASE("a key of the file that is below a section is an error that names its place") {
  const auto below = [](const std::string& section) {
    return problem_of(start + section + "\npublished = \"results.toml\"\n");
  };
  for (const std::string section : {"[matrix]", "[defaults]", "[model.mlp]", "[strategy.ddp]", "[compare]",
                                    "[data]", "[expect.mlp]", "[machine]", "[[exclude]]"}) {
    const bool of_matrix = section == "[matrix]";
    const std::string problem = below(of_matrix ? "" : section);
    CAPTURE(problem);
    CHECK(problem.find(": error: \"published\" is not a key of " + section +
                       "; it must be above the first section") != std::string::npos);
  }
  CHECK(problem_of(start + "data_seed = 3").find("it must be above the first section") != std::string::npos);
}

TEST_CASE("names in capital letters are errors that suggest the small ones") {
  check_all({
      {start + "strategy = [\"DDP\"]", "4:13: there is no strategy \"DDP\"; did you mean \"ddp\"?"},
      {start + "[defaults]\noptimizer = \"SGD\"",
       "5:13: optimizer must be … but is \"SGD\"; did you mean \"sgd\"?"},
  });
}

TEST_CASE("margins that are probably mistakes are warnings") {
  const auto with = [](const std::string& margins) {
    return problem_of(start + "strategy = [\"single\", \"ddp\"]\n[compare]\nmargins = { " + margins + " }");
  };
  const std::string ratio = " of the baseline is still NO CHANGE; for 5 % write 1.05";
  CHECK(with("time = 5") == "f.toml:6:20: warning: this margin is a ratio: 5.0 times the time" + ratio);
  CHECK(with("loss = { ratio = 1.51 }") ==
        "f.toml:6:30: warning: this margin is a ratio: 1.51 times the loss" + ratio);
  const std::string points = " points; for half a percentage point write 0.5";
  CHECK(with("accuracy_points = 5.5") ==
        "f.toml:6:31: warning: this margin is in percentage points: few differences exceed 5.5" + points);
  CHECK(with("accuracy_points = 0.005") ==
        "f.toml:6:31: warning: this margin is in percentage points: NO CHANGE is hardly ever found within "
        "0.005" +
            points);
  CHECK(with("time = 1.5, loss = { ratio = 1.5, absolute = 9 }, accuracy_points = 5").empty());
  CHECK(with("accuracy_points = 0.01").empty());
  CHECK(with("time = 1") == "f.toml:6:20: error: time must be a number > 1, but is 1");
}

TEST_CASE("errors in command-line values are located there") {
  const auto set = [](const std::string& text) { return problems_of(start, {.set = {text}, .where = {}}); };
  const auto where = [](const std::string& text) { return problems_of(start, {.set = {}, .where = {text}}); };
  CHECK(set("epochs=0").at(0) == "--set epochs: error: epochs must be an integer in [1, 1000000], but is 0");
  CHECK(set("epoch=1").at(0) == "--set epoch: error: \"epoch\" is not a key; did you mean \"epochs\"?");
  CHECK(set("epochs").at(0) == "--set: error: \"epochs\" is not name=value, as in epochs=1");
  CHECK(set("epochs=1\nbatch=2").size() == 1);
  CHECK(set("channels=[1, 2]").at(0) ==
        "--set channels: error: \"channels\" is not a key of any model of the experiment");
  CHECK(where("modle=mlp").at(0) ==
        "--where modle: error: no run has a value named \"modle\"; did you mean \"model\"?");
  CHECK(where("model=mpl").at(0) == "--where model: error: no run has model = mpl; did you mean \"mlp\"?");
  CHECK(where("mlp").at(0) == "--where: error: \"mlp\" is not name=value, as in epochs=1");
}

TEST_CASE("the terms of a comparison are not checked if the file has errors") {
  const std::string of_model = "name = \"x\"\n[matrix]\nstrategy = [\"single\", \"ddp\"]\nmodel = ";
  check_all({{of_model + "[\"nbow\"]\n[defaults]\nbatch_norm = \"sync\"\ndataset = \"cifar10\"",
              "7:11: model \"nbow\" cannot be trained on \"cifar10\", only on imdb, synthetic-reviews"},
             {of_model + "[\"conv-autoencoder\"]\n[defaults]\nbatch_norm = \"sync\"\ndataset = \"imdb\"",
              "7:11: model \"conv-autoencoder\" cannot be trained on \"imdb\", only on mnist, cifar10"}});
}
