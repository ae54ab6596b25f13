// Strategies that run a user's program: allowed keys, the run key, and excluded runs.
#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "experiments/file/file.h"
#include "experiments/run/run.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;
using trainyard::tests::ScratchFolder;

namespace {

std::string file_with(const std::string& strategy, const std::string& matrix = "") {
  return "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"mine\"]\nseed = [4]\n" + matrix +
         "[defaults]\ndataset = \"synthetic-digits\"\nlearning_rate = 0.1\n[strategy.mine]\n" + strategy;
}

std::string problems_of(const std::string& toml) {
  std::string all;
  for (const Problem& problem : load_text(toml, "f.toml").problems) all += to_text(problem) + "\n";
  return all;
}

Experiment loaded(const std::string& toml, const std::filesystem::path& file = "f.toml",
                  const Selection& selection = {}) {
  Loaded result = load_text(toml, file, selection);
  REQUIRE_MESSAGE(result.experiment.has_value(), problems_of(toml));
  return std::move(*result.experiment);
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a command contains the values of its run, and braces are doubled") {
  const auto experiment = loaded(file_with(
      "command = [\"python3\", \"train.py\", \"--lr={learning_rate}\", \"{seed}/{model}\", \"{{seed}}\"]\n"
      "replicas = 3\n"));
  const Strategy& strategy = experiment.runs.at(0).strategy;
  CHECK(strategy.command == Texts{"python3", "train.py", "--lr=0.1", "4/mlp", "{seed}"});
  CHECK(strategy.kind == "foreign");
  CHECK(strategy.world_size() == 3);
}

TEST_CASE("an invalid command is an error at its place") {
  const auto has = [](const std::string& strategy, const std::string& text) {
    const std::string problems = problems_of(file_with(strategy));
    CHECK_MESSAGE(problems.find(text) != std::string::npos, problems);
  };
  has("command = [\"a\", \"{learning_rat}\"]\n",
      "f.toml:10:1: error: a run has no value named \"learning_rat\"; did you mean");
  has("command = [\"a\", \"{learning_rate\"]\n", "has a { that is not closed");
  has("command = \"python3 train.py\"\n", "command of [strategy.mine] must be a list of texts");
  has("command = [1]\n", "must be a list of texts");
  has("command = []\n", "must be a list of texts");
  has("command = [\"a\"]\nkind = \"ddp\"\n", "a strategy with a command has no kind");
  has("kind = \"ddp\"\nfiles = [\"a\"]\n", "files of [strategy.mine] needs a command");
  has("command = [\"a\"]\nstages = 2\n", "stages of strategy \"mine\" (foreign) must be 1, but is 2");
  has("replicas = 2\n", "a name of your own needs a command or a kind");
  CHECK(problems_of("name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n[strategy.ddp]\ncommand = [\"a\"]\n")
            .find("give a strategy with a command another name") != std::string::npos);
}

TEST_CASE("the key depends on the arguments and the content of declared files, not on names and folders") {
  const ScratchFolder one, two;
  const auto key = [](const std::filesystem::path& folder, const std::string& name,
                      const std::string& content, const std::string& argument) {
    std::ofstream(folder / name) << content;
    auto experiment =
        loaded(file_with("command = [\"a\", \"" + argument + "\"]\nfiles = [\"" + name + "\"]\n"),
               folder / "f.toml");
    resolve_data(experiment, {});
    CHECK(experiment.runs.at(0).strategy.folder == folder.string());
    return run_key(experiment.runs.at(0));
  };
  const std::string first = key(one.path(), "train.py", "print(1)", "x");
  CHECK(key(two.path(), "other.py", "print(1)", "x") == first);
  CHECK(key(one.path(), "train.py", "print(2)", "x") != first);
  CHECK(key(one.path(), "train.py", "print(1)", "y") != first);
}

TEST_CASE("a foreign run survives its JSON, and the JSON of other runs has no foreign members") {
  auto experiment = loaded(file_with("command = [\"a\", \"b\"]\n"));
  resolve_data(experiment, {});
  const Run& run = experiment.runs.at(0);
  CHECK(run_from_json(to_json(run)) == run);
  CHECK_FALSE(to_json(Run{}).at("strategy").contains("command"));
}

TEST_CASE("a missing declared file is an error that names it") {
  const ScratchFolder folder;
  auto experiment =
      loaded(file_with("command = [\"a\"]\nfiles = [\"nowhere.py\"]\n"), folder.path() / "f.toml");
  CHECK_THROWS_WITH_AS(resolve_data(experiment, {}), doctest::Contains("nowhere.py"), UserError);
}

TEST_CASE("--exclude-where removes the runs that match all values of one condition") {
  const std::string toml =
      "name = \"x\"\n[matrix]\nmodel = [\"mlp\", \"cnn\"]\nseed = [0, 1]\nepochs = [1, 2]\n";
  const auto left = [&](const Texts& conditions) {
    return loaded(toml, "f.toml", {.set = {}, .where = {}, .exclude_where = conditions}).runs.size();
  };
  CHECK(left({}) == 8);
  CHECK(left({"model=cnn,seed=1"}) == 6);
  CHECK(left({"model=cnn", "seed=1"}) == 2);
  const auto problem = load_text(toml, "f.toml", {.set = {}, .where = {}, .exclude_where = {"model=vgg"}});
  CHECK(to_text(problem.problems.at(0)).find("--exclude-where model") != std::string::npos);
}

TEST_CASE("the communicator of a machine is chosen by name") {
  const std::string start = "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n";
  CHECK(loaded(start).machine.communicator == "auto");
  CHECK(loaded(start + "[machine]\ncommunicator = \"gloo\"\n").machine.communicator == "gloo");
  CHECK(problems_of(start + "[machine]\ncommunicator = \"glue\"\n")
            .find("communicator must be one of \"auto\", \"gloo\", \"nccl\"") != std::string::npos);
}

TEST_CASE("on a cluster ranks train on GPUs if they are given some, or if the file requires it") {
  const std::string start = "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n[machine]\n";
  const std::string slurm = start + "launcher = \"slurm\"\n";
  const auto on_gpus = [](const std::string& text) { return loaded(text).machine.gpus_elsewhere(); };
  CHECK(loaded(start).machine.accelerator == "auto");
  CHECK_FALSE(on_gpus(start + "accelerator = \"cuda\"\n"));  // GPUs of this host, which the plan finds
  CHECK_FALSE(on_gpus(slurm));
  CHECK(on_gpus(slurm + "gpus_per_task = 1\n"));
  CHECK(on_gpus(slurm + "accelerator = \"cuda\"\noptions = [\"--gres=gpu:2\"]\n"));
  CHECK_FALSE(on_gpus(slurm + "accelerator = \"cpu\"\n"));
}

TEST_CASE("a machine's progress timeout is a number of seconds, and half an hour by default") {
  const std::string start = "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n";
  CHECK(loaded(start).machine.progress_timeout_seconds == 1800);
  CHECK(loaded(start + "[machine]\nprogress_timeout = 2.5\n").machine.progress_timeout_seconds == 2.5);
  for (const char* wrong : {"-1", "inf", "nan", "\"1 h\""})
    CHECK(problems_of(start + "[machine]\nprogress_timeout = " + wrong + "\n")
              .find("progress_timeout must be") != std::string::npos);
}

TEST_CASE("a declared file that changes or disappears after it was read is named") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "pkg");
  tests::write_text(folder / "train.py", "one");
  tests::write_text(folder / "pkg/model.py", "two");
  auto experiment =
      loaded(file_with("command = [\"python3\", \"train.py\"]\nfiles = [\"train.py\", \"pkg/*.py\"]\n"),
             folder / "f.toml");
  resolve_data(experiment, {});
  const Strategy& strategy = experiment.runs.at(0).strategy;
  CHECK(changed_file(strategy).empty());
  tests::write_text(folder / "pkg/model.py", "three");
  CHECK(changed_file(strategy).starts_with("pkg/model.py has changed since the sweep began"));
  tests::write_text(folder / "pkg/model.py", "two");
  CHECK(changed_file(strategy).empty());
  std::filesystem::remove(folder / "train.py");
  CHECK(changed_file(strategy).starts_with("train.py cannot be read any more: No such file or directory"));
}
