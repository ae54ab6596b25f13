// `trainyard compare --from`: verdicts on a CSV file of runs that trainyard did not make.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;
using nlohmann::json;

namespace {

using Arguments = std::vector<std::string>;

Arguments judging(const std::string& file, const Arguments& further) {
  Arguments all{"compare", "--from", file};
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

// The verdicts of all cells, each with the label of its cell.
std::vector<json> verdicts_of(const Scratch& folder, const std::string& file, Arguments options) {
  options.insert(options.end(), {"--format", "json"});
  const Output output = folder.at(judging(file, options));
  REQUIRE_MESSAGE(output.code == 0, output.err);
  std::vector<json> verdicts;
  const json printed = json::parse(output.out);
  for (const json& cell : printed.at("comparisons").at(0).at("cells"))
    for (json verdict : cell.at("verdicts")) {
      verdict["cell"] = cell.at("label");
      verdicts.push_back(std::move(verdict));
    }
  return verdicts;
}

const Arguments by_seed{"--arm", "optimizer", "--baseline", "sgd", "--pair", "seed"};

Arguments also(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Three metrics of ten runs, as pandas writes them: an index without a name, and quotation marks.
std::string pandas_runs() {
  std::string text = ",optimizer,seed,val_loss,test_acc,train_seconds,note\r\n";
  for (int row = 0; row < 10; ++row) {
    const bool first = row % 2 == 0;
    const std::string seed = std::to_string(row / 2), wave = row / 2 % 2 == 0 ? "0" : "1";
    text.append(std::to_string(row)).append(first ? ",sgd," : ",adam,").append(seed);
    text.append(first ? ",0.5" : ",0.4").append(wave).append(",0.90").append(wave);
    text.append(first ? ",10." : ",5.").append(wave).append(first ? ",\"a, b\"\r\n" : ",\"c \"\"d\"\"\"\r\n");
  }
  return text;
}

}  // namespace

TEST_CASE("verdicts on five published tables have SciPy's numbers") {
  const std::filesystem::path tables =
      std::filesystem::path(TRAINYARD_SOURCE) / "tests/e2e/own_data/published";
  const Scratch folder;
  std::size_t compared = 0;
  const json reference = json::parse(tests::read_text(tables / "reference.json"));
  for (const json& study : reference.at("tables")) {
    const auto table = study.at("table").get<std::string>();
    const std::vector<json> found = verdicts_of(folder, (tables / table).string(), study.at("options"));
    REQUIRE(found.size() == study.at("verdicts").size());
    for (const json& expected : study.at("verdicts")) {
      const auto verdict = std::ranges::find_if(found, [&](const json& one) {
        return one.at("cell") == expected.at("cell") && one.at("arm") == expected.at("arm");
      });
      CAPTURE(table);
      CAPTURE(expected.dump());
      REQUIRE(verdict != found.end());
      CAPTURE(verdict->dump());
      CHECK(verdict->at("verdict") == expected.at("word"));
      CHECK(verdict->at("n") == expected.at("n"));
      CHECK_FALSE(verdict->at("verified").get<bool>());
      const auto same = [&](const json& ours, const json& theirs) {
        CHECK(std::abs(ours.get<double>() - theirs.get<double>()) <= 1e-6 * std::abs(theirs.get<double>()));
      };
      same(verdict->at("effect"), expected.at("effect"));
      same(verdict->at("p"), expected.at("p"));
      for (const char* interval : {"ci95", "ci90"}) {
        same(verdict->at(interval).at(0), expected.at(interval).at(0));
        same(verdict->at(interval).at(1), expected.at(interval).at(1));
      }
      ++compared;
    }
  }
  CHECK(compared == 9);  // looms.csv has three cells, plants.csv two arms
}

TEST_CASE("a table of pandas is judged in every format, each word NOT VERIFIED and times without a word") {
  const Scratch folder;
  folder.write("runs.csv", "\xef\xbb\xbf" + pandas_runs());
  const Arguments options = also(by_seed, {"--metric", "val_loss,test_acc,train_seconds"});
  const auto verdicts = verdicts_of(folder, "runs.csv", options);
  REQUIRE(verdicts.size() == 3);
  CHECK(verdicts[0].at("metric") == "val_loss");
  CHECK(verdicts[0].at("verdict") == "IMPROVES");
  CHECK(verdicts[1].at("verdict") == "NO CHANGE");
  CHECK(verdicts[2].at("verdict") == "NOT COMPARABLE");
  CHECK(verdicts[2].at("p").is_null());
  CHECK(verdicts[2].at("effect").get<double>() == doctest::Approx(-50).epsilon(0.02));
  CHECK_FALSE(verdicts[2].at("ci95").is_null());
  CHECK(verdicts[2].at("baseline_runs").at(0) == "line 2");

  const std::string table =
      checked_output(folder.at(judging("runs.csv", options)), 0, "IMPROVES, NOT VERIFIED").out;
  CHECK(contains(table, "NO CHANGE, NOT VERIFIED"));
  CHECK(contains(table, "NOT COMPARABLE, NOT VERIFIED"));
  CHECK(contains(table,
                 "NOT VERIFIED: the records do not state data; initial weights; data order; host; load"));
  CHECK(contains(table, "loss by its name, lower is better"));
  CHECK(contains(table, "accuracy by its name, higher is better"));
  CHECK(contains(table, "times get no word, because host and load are not known"));
  CHECK(contains(table, "10 runs of runs.csv, paired by seed."));
  CHECK_FALSE(contains(table, "Machine"));
  const auto printed = [&](const std::string& format) {
    return folder.at(judging("runs.csv", also(options, {"--format", format}))).out;
  };
  CHECK(contains(printed("markdown"), "| adam | val\\_loss | IMPROVES, NOT VERIFIED |"));
  CHECK(contains(printed("latex"), "NOT VERIFIED"));
  CHECK(contains(printed("csv"), "optimizer,sgd,all runs,adam,val_loss,IMPROVES,percent,"));

  const Arguments gate = also(options, {"--fail-on", "not-verified"});
  checked_error(folder.at(judging("runs.csv", gate)), 3, "IMPROVES, NOT VERIFIED (val_loss)");
  const Arguments loss = also(by_seed, {"--metric", "val_loss", "--fail-on", "deteriorates"});
  CHECK(folder.at(judging("runs.csv", loss)).code == 0);
  CHECK(folder.at(judging("runs.csv", also(loss, {"--better", "higher"}))).code == 3);
  const Output piped = run_trainyard(
      folder.path(),
      {"-c", "\"$0\" compare --from - --arm optimizer --baseline sgd --metric val_loss < runs.csv",
       TRAINYARD_PROGRAM},
      {}, "/bin/sh");
  checked_output(piped, 0, "10 runs of standard input, not paired.");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "yard"));
}

TEST_CASE("options of a metric change kind, direction, unit and margin") {
  const Scratch folder;
  std::string text = "optimizer,seed,model,quality,top1\n";
  for (int seed = 0; seed < 6; ++seed)
    for (const char* model : {"small", "mlp"})
      for (const char* optimizer : {"sgd", "adam"}) {
        const double up = optimizer == std::string("adam") ? 1 : 0;
        text += std::string(optimizer) + "," + std::to_string(seed) + "," + model + "," +
                std::to_string(3 + 2 * up + 0.01 * up * (seed % 3)) + "," +
                std::to_string(90 + up + 0.02 * seed * up) + "\n";
      }
  folder.write("runs.csv", text);
  const Arguments options =
      also(by_seed, {"--by", "model", "--metric", "quality", "--metric", "top1", "--unit", "top1=%"});
  const auto words = [&](const Arguments& more) {
    std::string all;
    for (const json& verdict : verdicts_of(folder, "runs.csv", also(options, more)))
      all += verdict.at("cell").get<std::string>() + " " + verdict.at("metric").get<std::string>() + " " +
             verdict.at("verdict").get<std::string>() + "; ";
    return all;
  };
  const Arguments points{"--kind", "quality=score", "--margin", "quality=1"};
  CHECK(words(points) ==
        "small quality IMPROVES; small top1 IMPROVES; mlp quality IMPROVES; mlp top1 IMPROVES; ");
  CHECK(words(also(points, {"--better", "quality=lower", "--margin", "top1=2"})) ==
        "small quality DETERIORATES; small top1 NO CHANGE; mlp quality DETERIORATES; mlp top1 NO CHANGE; ");
  checked_output(folder.at(judging("runs.csv", also(options, points))), 0,
                 "(adam against sgd) on small and mlp.");
  const auto ratios =
      verdicts_of(folder, "runs.csv", also(options, {"--kind", "quality=loss", "--better", "higher"}));
  CHECK(ratios[0].at("verdict") == "IMPROVES");
  CHECK(ratios[0].at("effect").get<double>() == doctest::Approx(67).epsilon(1e-3));  // 5.01 / 3
  CHECK(ratios[0].at("scale") == "percent");
  CHECK(ratios[1].at("effect").get<double>() == doctest::Approx(1.05));
}

TEST_CASE("a run without a number is left out and named, and an infinite loss is a divergence") {
  const Scratch folder;
  std::string text = "optimizer,seed,loss\n";
  for (const char* optimizer : {"sgd", "adam"})
    for (int seed = 0; seed < 6; ++seed)
      text += std::string(optimizer) + "," + std::to_string(seed) + "," +
              (optimizer[0] == 'a' && seed == 2   ? "NaN"
               : optimizer[0] == 'a' && seed == 4 ? ""
                                                  : std::to_string(2 + 0.001 * seed)) +
              "\n";
  folder.write("runs.csv", text + "adam,9,2\n");
  const Arguments options = also(by_seed, {"--metric", "loss"});
  const auto verdicts = verdicts_of(folder, "runs.csv", options);
  CHECK(verdicts[0].at("n") == 4);
  CHECK(verdicts[0].at("left_out") ==
        json{"seed 2: adam has no value", "seed 4: adam has no value", "seed 9: sgd has no such run"});
  checked_output(folder.at(judging("runs.csv", options)), 0, "left out: seed 2, seed 4: adam has no value");
  checked_error(folder.at(judging("runs.csv", also(options, {"--fail-on", "missing"}))), 3, "runs left out");
  folder.write("runs.csv", text + "sgd,9,2\nadam,9,inf\n");
  const auto diverged = verdicts_of(folder, "runs.csv", options);
  CHECK(diverged[0].at("verdict") == "DETERIORATES");
  CHECK(diverged[0].at("reason").at("kind") == "diverged");
}

TEST_CASE("wrong tables and options of compare --from are refused in one line with the place") {
  const Scratch folder;
  const auto refused = [&](const std::string& text, const Arguments& options, const std::string& says) {
    CAPTURE(says);
    folder.write("runs.csv", text);
    const Output output = checked_error(folder.at(judging("runs.csv", options)), 2, says);
    CHECK(output.out.empty());
    CHECK_MESSAGE(std::count(output.err.begin(), output.err.end(), '\n') == 1, output.err);
  };
  const Arguments usual = also(by_seed, {"--metric", "loss"});
  const std::string good = "optimizer,seed,loss,width,acc\nsgd,1,2,64,50\nadam,1,3,64,50\n";
  refused("", usual, "runs.csv is empty");
  refused("optimizer,seed,loss\n", usual, "runs.csv has only the names of the columns; add rows below them");
  refused("optimizer,seed,loss\nsgd,1\n", usual, "runs.csv:2: the row has 2 cells, but the first row has 3");
  refused("optimizer,seed,loss\nsgd,1,high\n", usual,
          "runs.csv:2: column \"loss\" has \"high\", which is not a number");
  refused("optimizer,seed,loss\nsgd,,2\n", usual, "runs.csv:2: column \"seed\" has no value");
  refused("optimizer,seed,loss\nsgd,1,2\n", usual,
          "runs.csv: all rows have optimizer \"sgd\"; add another arm");
  refused("optimizer,seed,loss\nsdg,1,2\n", usual,
          "--baseline: no row has optimizer \"sgd\"; did you mean \"sdg\"?");
  refused(good + "sgd,1,4,64,50\n", usual,
          "runs.csv:4: the row has the same optimizer, seed as line 2; keep one row per run, for example its "
          "last epoch");
  refused(good + "sgd,1,4,128,50\n", usual,
          "runs.csv:4: the row has the same optimizer, seed as line 2; \"width\" differs: keep one row per "
          "run, for example its last epoch, or add --by \"width\"");
  refused(good, also(by_seed, {"--metric", "los"}), "runs.csv:1: there is no column \"los\"");
  refused(good, also(usual, {"--by", "seed"}), "--by seed: the options name this column twice");
  refused(good, {"--arm", "optimizer", "--baseline", "sgd", "--metric", "loss", "--by", "seed"},
          "--by seed: seeds are repetitions");
  refused(good, also(by_seed, {"--metric", "acc"}),
          "runs.csv:2: accuracy \"acc\" is 50, and not between 0 and 1; add --unit \"acc=%\" if it is in "
          "percent");
  refused(
      good, also(by_seed, {"--metric", "width"}),
      "the name of metric \"width\" does not say one kind; add --kind \"width=KIND\" with loss, accuracy");
  refused(good, also(by_seed, {"--metric", "width", "--kind", "los"}),
          "there is no --kind \"los\"; did you mean \"loss\"?");
  refused(good, also(by_seed, {"--metric", "width", "--kind", "score"}),
          "score \"width\" needs a margin above 0, not \"\"; write --margin \"width=NUMBER\"");
  refused(good, also(usual, {"--margin", "-2"}), "loss \"loss\" needs a margin above 0, not \"-2\"");
  refused(good, also(usual, {"--margin", "lost=2"}),
          "--margin lost=2: there is no such --metric; did you mean \"loss\"?");
  refused(good, also(usual, {"--better", "up"}),
          "--better: \"up\" is not a direction; choose lower or higher");
  refused(good, also(usual, {"--unit", "%"}),
          "--unit: loss \"loss\" is not in \"%\"; only accuracies can be in %");
  refused("optimizer,seed,loss\nsgd,1,\nadam,1,\n", usual, "runs.csv: no run has a number in these metrics");
  folder.write("runs.csv", good);
  const auto wrong = [&](const Arguments& options, const std::string& says) {
    checked_error(folder.at(judging("runs.csv", options)), 2, says);
  };
  wrong({"--arm", "optimizer", "--baseline", "sgd"}, "--from requires --metric");
  wrong({"--metric", "loss", "--baseline", "sgd"}, "--from requires --arm");
  wrong(also(usual, {"--experiment", "first"}),
        "--from judges the runs of a file; leave out A, B, --experiment");
  checked_error(folder.at(judging("none.csv", usual)), 2, "none.csv");
  checked_error(folder.at({"compare", "--arm", "optimizer"}), 2, "--arm requires --from");
}
