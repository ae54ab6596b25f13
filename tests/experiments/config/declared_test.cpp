// Models and data sets that a file declares for user programs.

#include <doctest/doctest.h>

#include "experiments/design/contract.h"
#include "experiments/file/file.h"
#include "experiments/run/run.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;
using trainyard::tests::ScratchFolder;

namespace {

const std::string own_gpt =
    "[model.char-gpt]\ntitle = \"Character GPT\"\ndataset = \"my-captions\"\n"
    "parameters = { width = 64, dropout = 0.1, tied = true, heads = [2, 4], init = \"xavier\" }\n"
    "[dataset.my-captions]\ntitle = \"My captions\"\n";

std::string file_declaring(const std::string& matrix, const std::string& more,
                           const std::string& command = "") {
  return "name = \"x\"\n[matrix]\nmodel = [\"char-gpt\"]\nstrategy = [\"mine\"]\nseed = [4]\n" + matrix +
         "[strategy.mine]\ncommand = [\"a\"" + command + "]\n" + more;
}

std::string problems_in(const std::string& toml, const Selection& selection = {}) {
  std::string all;
  for (const Problem& problem : load_text(toml, "f.toml", selection).problems) all += to_text(problem) + "\n";
  return all;
}

Experiment resolved_file(const std::string& toml, const Selection& selection = {}) {
  Loaded result = load_text(toml, "f.toml", selection);
  REQUIRE_MESSAGE(result.experiment.has_value(), problems_in(toml, selection));
  resolve_data(*result.experiment, {});
  return std::move(*result.experiment);
}

}  // namespace

TEST_CASE("a declared model has a title, and its parameters are axes and placeholders") {
  const auto experiment = resolved_file(
      file_declaring("width = [64, 128]\n", own_gpt, ", \"{model}/{dataset}/{width}/{dropout}\""));
  REQUIRE(experiment.runs.size() == 2);
  const Run& run = experiment.runs.at(1);
  CHECK(run.model == "char-gpt");
  CHECK(run.data.dataset == "my-captions");
  CHECK(run.strategy.command.at(1) == "char-gpt/my-captions/128/0.1");
  CHECK(run.hyperparameters.at("init") == Value(std::string("xavier")));
  CHECK(run.hyperparameters.at("heads") == Value(std::vector<std::int64_t>{2, 4}));
  CHECK(run.declared.model_title == "Character GPT");
  CHECK(run.declared.dataset_title == "My captions");
  CHECK(run.declared.task.empty());
  CHECK(experiment.varied == std::vector<std::string>{"width"});
  CHECK(experiment.keys.at(0) != experiment.keys.at(1));
  CHECK(run_from_json(to_json(run)) == run);
}

TEST_CASE("parameters of a declared model are allowed in [defaults], [[include]], --set and --where") {
  const std::string with_defaults = "[defaults]\nwidth = 32\n";
  CHECK(resolved_file(file_declaring("", own_gpt + with_defaults)).runs.at(0).hyperparameters.at("width") ==
        Value(std::int64_t{32}));
  const auto more = resolved_file(file_declaring("", own_gpt + "[[include]]\nwidth = 256\n"));
  REQUIRE(more.runs.size() == 2);
  CHECK(more.runs.at(1).hyperparameters.at("width") == Value(std::int64_t{256}));
  const std::string axis = file_declaring("width = [64, 128]\n", own_gpt);
  CHECK(resolved_file(axis, {.set = {}, .where = {"width=128"}}).runs.size() == 1);
  const auto set = resolved_file(axis, {.set = {"width=512", "dropout=0"}, .where = {}});
  REQUIRE(set.runs.size() == 1);
  CHECK(set.runs.at(0).hyperparameters.at("width") == Value(std::int64_t{512}));
  CHECK(set.runs.at(0).hyperparameters.at("dropout") == Value(0.0));
  CHECK(problems_in(axis, {.set = {"width=wide"}, .where = {}}).find("width must be an integer") !=
        std::string::npos);
}

TEST_CASE("a declared model or data set with a built-in strategy is an error at its place") {
  const std::string built_in =
      "name = \"x\"\n[matrix]\nmodel = [\"char-gpt\"]\nstrategy = [\"single\"]\nseed = [4]\n" + own_gpt;
  CHECK(problems_in(built_in) ==
        "f.toml:4:13: error: strategy \"single\" cannot train your own model \"char-gpt\"; "
        "use a strategy with a command\n");
  const std::string own_data =
      "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"ddp\"]\nseed = [4]\n[defaults]\ndataset = "
      "\"mine\"\n[dataset.mine]\ntitle = \"Mine\"\n";
  CHECK(problems_in(own_data).find(
            "f.toml:4:13: error: strategy \"ddp\" cannot train your own data set \"mine\"") == 0);
  // Excluded runs are not checked.
  CHECK(problems_in(
            "name = \"x\"\n[matrix]\nmodel = [\"mlp\", \"char-gpt\"]\nstrategy = [\"single\", \"mine\"]\n"
            "[strategy.mine]\ncommand = [\"a\"]\n[[exclude]]\nstrategy = \"single\"\nmodel = \"char-gpt\"\n" +
            own_gpt) == "");
}

TEST_CASE("an invalid declaration is an error at its place") {
  const auto has = [](const std::string& declarations, const std::string& text) {
    const std::string problems = problems_in(file_declaring("", declarations));
    CHECK_MESSAGE(problems.find(text) != std::string::npos, problems);
  };
  const std::string data = "[dataset.d]\ntitle = \"D\"\n";
  const auto model = [&](const std::string& lines) { return data + "[model.char-gpt]\n" + lines; };
  has(model("parameters = { width = 64 }\n"), "model \"char-gpt\" has no title");
  has(model("title = \"\"\n"), "title must be one line of 1 to 80 bytes");
  has(model("title = \"G\"\n"),
      "model \"char-gpt\" has no data set; add one, such as dataset = \"my-captions\"");
  has(model("title = \"G\"\ntask = \"chess\"\n"), "task must be one of \"classification\"");
  has(model("title = \"G\"\nparameters = 3\n"), "parameters must be a table of defaults");
  has(model("title = \"G\"\nparameters = { epochs = 3 }\n"), "\"epochs\" is a key of every run");
  has(model("title = \"G\"\nparameters = { global_batch = 3 }\n"), "\"global_batch\" is a key of every run");
  has(model("title = \"G\"\nparameters = { \"a b\" = 3 }\n"),
      "the name of a parameter must be 1 to 40 letters");
  has(model("title = \"G\"\nparameters = { width = 1979-05-27 }\n"), "width must be a number, a text");
  has(model("title = \"G\"\nparameters = { width = 1 }\nwidth = 2\n"),
      "is a parameter of this model; set it in `parameters`");
  has(model("title = \"G\"\nimage = 2\n"), "\"image\" is not a key of [model.char-gpt]");
  has("[model.mlp]\ntitle = \"Mine\"\n", "it belongs in [model.NAME], where NAME is a model of your own");
  has("[model.mpl]\nepochs = 3\n", "there is no model \"mpl\"; did you mean \"mlp\"?");
  has("[model.bert]\nepochs = 3\n", "a model of your own needs a title");
  has("[dataset.mnist]\ntitle = \"Mine\"\n", "data set \"mnist\" is one of trainyard's");
  has("[dataset.mine]\n", "data set \"mine\" has no title");
  has("[dataset.mine]\ntitle = \"M\"\nfolder = \"x\"\n", "\"folder\" is not a key of [dataset.mine]");
  has(own_gpt + "[data]\nmy-captions = \"x\"\n", "which your program reads itself; remove this line");
  has(own_gpt + "[defaults]\nwidht = 3\n", "\"widht\" is not a key of [defaults]; did you mean \"width\"?");
}

TEST_CASE("a title is not in the run key, and runs without declarations have the same JSON as before") {
  const auto key = [](const std::string& text) { return resolved_file(file_declaring("", text)).keys.at(0); };
  std::string retitled = own_gpt;
  retitled.replace(retitled.find("Character GPT"), 13, "Another title");
  CHECK(key(retitled) == key(own_gpt));
  std::string wider = own_gpt;
  wider.replace(wider.find("width = 64"), 10, "width = 65");
  CHECK(key(wider) != key(own_gpt));
  CHECK_FALSE(to_json(Run{}).contains("declared"));
}

TEST_CASE("the task of a declared model decides which metrics can be expected") {
  const std::string expects = "[expect.char-gpt]\ntest_accuracy = 0.5\n";
  CHECK(problems_in(file_declaring("", own_gpt + expects)) == "");
  CHECK(problems_in(file_declaring("", own_gpt + "[expect.char-gpt]\ntest_psnr = 3\n"))
            .find("is not defined for model") != std::string::npos);
}

TEST_CASE(
    "two arms with different parameters of a declared model are not comparable, unless it is declared") {
  auto values = values_by_name(resolved_file(file_declaring("", own_gpt)).runs.at(0));
  auto others = values;
  others["width"] = std::int64_t{128};
  Compare compare;
  const auto differences = differing_terms(stated_by(values), stated_by(others), compare);
  REQUIRE(differences.size() == 1);
  CHECK(to_text(differences.front()) == "width 128 against 64");
  CHECK_FALSE(differences.front().declared);
  compare.differs = {"width"};
  CHECK(differing_terms(stated_by(values), stated_by(others), compare).front().declared);
}

TEST_CASE("every value of a run except its hyperparameters has a reserved name") {
  for (const char* strategy : {"single", "ddp", "pipeline"}) {
    Loaded loaded =
        load_text("name = \"x\"\n[matrix]\nmodel = [\"seq2seq\"]\nstrategy = [\"" + std::string(strategy) +
                      "\"]\n[defaults]\nthreads = 1\ntrain_samples = 100\n"
                      "dataset = \"synthetic-phrases\"\nlearning_rate_schedule = \"step\"\n",
                  "f.toml");
    REQUIRE(loaded.experiment.has_value());
    resolve_data(*loaded.experiment, {});
    const Run& run = loaded.experiment->runs.at(0);
    for (const auto& [name, value] : values_by_name(run))
      CHECK_MESSAGE(is_run_value(name) != run.hyperparameters.contains(name), name);
  }
}
