// `published = "….toml"`: published numbers that are plotted beside ours.
#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "experiments/file/file.h"
#include "experiments/file/read_reference_results.h"
#include "experiments/run/strategies.h"
#include "models/catalogue.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;
using trainyard::tests::ScratchFolder;

namespace {

Published read(const std::string& toml, Diagnostics& problems) {
  return published_from_toml(toml, "p.toml", {models::model_names(), strategy_names()}, problems);
}

std::string problem_of(const std::string& toml) {
  Diagnostics problems;
  read(toml, problems);
  std::string all;
  for (const Problem& problem : problems.in_file_order()) all += to_text(problem) + "\n";
  return all;
}

}  // namespace

TEST_CASE("a list is the first and last epoch, a single time is for all, and _last is the last epoch") {
  Diagnostics problems;
  const Published published = read(
      "[paper]\nhardware.ddp = \"two cards\"\nsizes = { train_samples = 50000, data = \"all\" }\nseries = "
      "[\"any\"]\n[paper.cnn]\nepochs = 20\n"
      "single = { train_seconds = 22, train_accuracy = [0.3, 0.4] }\nddp = { train_loss_last = 2.3, note = "
      "\"x\" }\n"
      "[paper.summary]\nfree = 1\n",
      problems);
  CHECK(problems.errors() == 0);
  REQUIRE(published.sources.size() == 1);
  const PublishedSource& source = published.sources.front();
  CHECK(source.hardware.at("ddp") == "two cards");
  CHECK(source.sizes == std::map<std::string, std::string>{{"data", "all"}, {"train_samples", "50000"}});
  REQUIRE(source.series.size() == 3);
  CHECK(source.series[0].metric == "train_seconds");
  CHECK(source.series[0].points.front().epoch == 0);
  CHECK(source.series[1].points.back().epoch == 20);
  CHECK(source.series[1].points.back().value == 0.4);
  CHECK(source.series[2].metric == "train_loss");
  CHECK(source.series[2].points.front().epoch == 20);
}

TEST_CASE("the table of verdicts names metrics, effects and models with an arm in brackets") {
  Diagnostics problems;
  const Published published = read(
      "[paper.verdict]\naccuracy = { improves = [\"vgg11\", \"mlp (mp-ddp)\"], deteriorates = [\"cnn\"] }\n"
      "time = { no-change = [] }\n",
      problems);
  CHECK(problems.errors() == 0);
  REQUIRE(published.sources.size() == 1);
  CHECK(published.sources.front().verdicts ==
        std::vector<PublishedVerdict>{{"accuracy", "improves", "vgg11", ""},
                                      {"accuracy", "improves", "mlp", "mp-ddp"},
                                      {"accuracy", "deteriorates", "cnn", ""}});
  CHECK(published_from_json(to_json(published)).sources.front().verdicts ==
        published.sources.front().verdicts);
}

TEST_CASE("a mistake in the table of verdicts is an error at its place") {
  const auto problem = [](const std::string& line) { return problem_of("[p.verdict]\n" + line + "\n"); };
  CHECK(problem("acuracy = { improves = [\"mlp\"] }").find("accuracy") != std::string::npos);
  CHECK(problem("accuracy = { improvs = [\"mlp\"] }").find("improves") != std::string::npos);
  CHECK(problem("accuracy = 3").find("a table") != std::string::npos);
  CHECK(problem("accuracy = { improves = 3 }").find("a list of models") != std::string::npos);
  CHECK(problem("accuracy = { improves = [\"mpl\"] }").find("did you mean \"mlp\"?") != std::string::npos);
  CHECK(problem("accuracy = { improves = [\"mlp (mp-dpd)\"] }").find("did you mean \"mp-ddp\"?") !=
        std::string::npos);
}

TEST_CASE("the published study of the project has its table of verdicts") {
  const std::filesystem::path file = "experiments/published-results.toml";
  std::ifstream in(file);
  Diagnostics problems;
  const Published published = read({std::istreambuf_iterator<char>(in), {}}, problems);
  CHECK(problems.errors() == 0);
  const auto source = std::ranges::find(published.sources, std::string("stifi-2025"), &PublishedSource::name);
  REQUIRE(source != published.sources.end());
  CHECK(source->verdicts.size() == 18);
}

TEST_CASE("the tables of a source have percentages of an axis, or numbers per epoch or repeat") {
  Diagnostics problems;
  const Published published = read(
      "[p]\ndataset = \"mnist\"\n[p.tables.layers]\naxis = \"hidden\"\nvalues = [[32], [32, 32]]\n"
      "at = { epochs = 1 }\nnote = \"x\"\ntotal_train_seconds = [100, 118.2]\n"
      "[p.tables.five]\nat = { strategy = \"single\" }\nrepeats = true\ntest_accuracy = 0.9\n",
      problems);
  CHECK(problems.errors() == 0);
  REQUIRE(published.sources.size() == 1);
  const PublishedSource source = published_from_json(to_json(published)).sources.front();
  CHECK(source.dataset == "mnist");
  REQUIRE(source.tables.size() == 2);
  CHECK(source.tables[0].values == std::vector<std::string>{"[32]", "[32, 32]"});
  CHECK(source.tables[0].at.at("epochs") == "1");
  CHECK(source.tables[0].numbers.at("total_train_seconds") == std::vector<double>{100, 118.2});
  CHECK(source.tables[0].note == "x");
  CHECK(source.tables[1].repeats);
  CHECK(source.tables[1].numbers.at("test_accuracy") == std::vector<double>{0.9});

  const auto problem = [](const std::string& lines) { return problem_of("[p.tables.a]\n" + lines + "\n"); };
  CHECK(problem("train_accuracie = [1]").find("did you mean \"train_accuracy\"") != std::string::npos);
  CHECK(problem("train_loss = \"1\"").find("train_loss must be a number >= 0") != std::string::npos);
  CHECK(problem("axis = \"threads\"").find("needs both `axis` and `values`") != std::string::npos);
  CHECK(problem("axis = \"threads\"\nvalues = [1]").find("at least two values") != std::string::npos);
  for (const char* wrong : {"[100]", "[99, 110]", "[100, 110, 120]"})
    CHECK(problem(std::string("axis = \"threads\"\nvalues = [1, 2]\ntrain_loss = ") + wrong)
              .find("one percentage for each of `values`, and the first must be 100") != std::string::npos);
}

TEST_CASE("published numbers of a journal without tables are read") {
  const nlohmann::json old = nlohmann::json::parse(
      R"({"file": "p.toml", "text": "", "sources": [{"name": "p", "hardware": {}, "series": [], "sizes": {},
          "verdicts": []}]})");
  CHECK(published_from_json(old).sources.front().tables.empty());
}

TEST_CASE("published numbers survive their JSON") {
  Diagnostics problems;
  const Published published =
      read("[p.mlp]\nepochs = 10\nddp = { train_accuracy = [0.7, 0.95] }\n", problems);
  CHECK(to_json(published_from_json(to_json(published))) == to_json(published));
}

TEST_CASE("an invalid published file is an error at its place") {
  CHECK(problem_of("[p.mlp]\nepochs = 2\nddp = { train_acuracy = [0.1, 0.2] }\n").find("p.toml:3:9") !=
        std::string::npos);
  CHECK(problem_of("[p.mlp]\nepochs = 2\nddp = { train_acuracy = [0.1, 0.2] }\n").find("train_accuracy") !=
        std::string::npos);
  CHECK(problem_of("[p.mlp]\nddp = { train_loss = [2, 1] }\n").find("set `epochs` in [p.mlp]") !=
        std::string::npos);
  CHECK(problem_of("[p.mlp]\nepochs = 2\nddp = { train_loss = 2 }\n").find("[first, last]") !=
        std::string::npos);
  CHECK(problem_of("[p.mlp]\nddp = { train_seconds = -1 }\n").find("a number >= 0") != std::string::npos);
  CHECK(problem_of("[p.mlp]\nddp = 3\n").find("a table of numbers") != std::string::npos);
  CHECK(problem_of("x = 1\n").find("has no numbers") != std::string::npos);
  CHECK(problem_of("[p\n").find("p.toml:1") != std::string::npos);
}

TEST_CASE("a mistyped arm or model of a published file is an error that suggests the right one") {
  const auto numbers = [](const std::string& model, const std::string& arm, const std::string& more = "") {
    return problem_of("[smith2024]\n" + more + "[smith2024." + model + "]\n" + arm +
                      " = { train_seconds = 2 }\n[smith2024.cnn]\nsingle = { train_seconds = 1 }\n");
  };
  const std::string arm = numbers("mlp", "signle");
  CHECK_MESSAGE(
      arm.find("p.toml:3:1: error: there is no strategy \"signle\"; did you mean \"single\"? If only "
               "the publication has it, add arms = [\"signle\"] to [smith2024]") != std::string::npos,
      arm);
  const std::string model = numbers("mpl", "single");
  CHECK_MESSAGE(
      model.find("p.toml:2:12: error: there is no model \"mpl\"; did you mean \"mlp\"?") != std::string::npos,
      model);
  CHECK(numbers("mlp", "signle", "arms = [\"signle\"]\n") == "");
  CHECK(numbers("mpl", "single", "models = [\"mpl\"]\n") == "");
  CHECK(numbers("mlp", "horovod") == "");         // an arm of the publication
  CHECK(numbers("vgg16", "single") == "");        // a network other than vgg11
  CHECK(numbers("transformer", "single") == "");  // a model of the publication
  CHECK(problem_of("[p.cnn]\nsingle = { train_seconds = 1 }\n[p.mpl]\nnotes = \"for people\"\n") == "");
  CHECK(numbers("mlp", "single", "arms = [1]\n").find("arms must be a list of names") != std::string::npos);
}

TEST_CASE("an arm of a published file may have the name of a strategy of the experiment") {
  const ScratchFolder folder;
  std::ofstream(folder / "p.toml") << "[p.mlp]\nsingles = { train_seconds = 24 }\n";
  const std::string start = "name = \"x\"\npublished = \"p.toml\"\n[matrix]\nmodel = [\"mlp\"]\n";
  const Loaded unknown = load_text(start, folder / "x.toml");
  CHECK_FALSE(unknown.experiment.has_value());
  REQUIRE(unknown.problems.size() == 1);
  CHECK(unknown.problems.front().message.find("did you mean \"single\"?") != std::string::npos);
  CHECK(load_text(start + "[strategy.singles]\nkind = \"single\"\n", folder / "x.toml").experiment);
}

TEST_CASE("`published` is relative to the experiment's folder, and a missing file is an error at its place") {
  const ScratchFolder folder;
  const std::string text = "[p.mlp]\nsingle = { train_seconds = 24 }\n";
  std::ofstream(folder / "p.toml") << text;
  const std::string start = "name = \"x\"\npublished = \"";
  const Loaded found = load_text(start + "p.toml\"\n[matrix]\nmodel = [\"mlp\"]\n", folder / "x.toml");
  REQUIRE(found.experiment.has_value());
  REQUIRE(found.experiment->published.has_value());
  CHECK(found.experiment->published->file == "p.toml");
  CHECK(found.experiment->published->text == text);
  const Loaded missing = load_text(start + "q.toml\"\n[matrix]\nmodel = [\"mlp\"]\n", folder / "x.toml");
  CHECK_FALSE(missing.experiment.has_value());
  REQUIRE(missing.problems.size() == 1);
  CHECK(missing.problems.front().location.line == 2);
}

TEST_CASE("the numbers of the published study are read completely") {
  const Loaded study = load("experiments/published-study.toml");
  REQUIRE(study.experiment.has_value());
  REQUIRE(study.experiment->published.has_value());
  REQUIRE(study.experiment->published->sources.size() == 1);
  const auto& series = study.experiment->published->sources.front().series;
  const auto found = std::ranges::find_if(series, [](const PublishedSeries& one) {
    return one.model == "cnn" && one.arm == "ddp" && one.metric == "train_loss";
  });
  REQUIRE(found != series.end());
  CHECK(found->points.back().value == 2.3);  // ln 10: it stayed at chance level
}
