// `trainyard compare` and `export` from the command line, on a yard with a finished sweep.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "orchestrator/yard/yard.h"
#include "tests/db/support/yard.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"
#include "tests/tools/trainyard/commands/program_says.h"

using namespace trainyard;
using namespace trainyard::db::testing;
using namespace trainyard::tests;

namespace {

// Runs of mlp with single and ddp and 3 seeds, in the journal as "demo". ddp takes `factor` of single's time. The first
// `finished` of them have finished.
struct Filled {
  TemporaryFolder folder;
  std::vector<experiments::Run> runs;
  explicit Filled(double factor, std::size_t finished = 6) {
    db::Database database = db::Database::open_for_writing(folder / "results.db");
    for (const std::int64_t replicas : {1, 2})
      for (const std::uint64_t seed : {0, 1, 2}) runs.push_back(make_run("mlp", replicas, seed));
    db::Ingest ingest(database);
    nlohmann::json entry = run_entry("demo", runs, "2026-11-20T08:00:00.000Z");
    entry["compare"][0]["differs"] = {"samples"};  // rank r of `finish` has r + 1 times the samples of rank 0
    ingest.journal_entry(entry);
    for (std::size_t i = 0; i < finished; ++i) {
      const experiments::Run& run = runs[i];
      const double seconds =
          (run.strategy.replicas == 2 ? 2 * factor : 2) + 0.01 * static_cast<double>(run.seed);
      finish(ingest, run, make_launch(run), {seconds, seconds, seconds});
    }
  }
  Outcome asks(const std::string& arguments) const {
    return trainyard_says(arguments + " --yard '" + folder.path().string() + "'");
  }
};

// The first cell of `compare --format json`, and its verdict on one metric.
const nlohmann::json& first_cell(const nlohmann::json& said) {
  return said.at("comparisons").at(0).at("cells").at(0);
}
nlohmann::json of_metric(const nlohmann::json& said, const std::string& metric) {
  for (const nlohmann::json& verdict : first_cell(said).at("verdicts"))
    if (verdict["metric"] == metric) return verdict;
  FAIL("no " << metric);
  return {};
}

}  // namespace

TEST_CASE("compare prints the comparison of the experiment file, as JSON with numbers and verdicts") {
  const Filled yard(0.5);
  const Outcome said = yard.asks("compare --format json");
  REQUIRE_MESSAGE(said.code == 0, said.out);
  const auto time = of_metric(nlohmann::json::parse(said.out), "train-seconds");
  CHECK(first_cell(nlohmann::json::parse(said.out))["model"] == "mlp");
  CHECK(first_cell(nlohmann::json::parse(said.out))["baseline"]["value"] == "single");
  CHECK(time["arm"] == "ddp");
  CHECK(time["verdict"] == "IMPROVES");
  CHECK(time["verified"] == true);
  CHECK(time["n"] == 3);
  CHECK(time["effect"].get<double>() == doctest::Approx(-49.75).epsilon(0.001));
  CHECK(time["ci95"][0].get<double>() < time["ci90"][0].get<double>());
  CHECK(time["p"].get<double>() < 0.04);
  CHECK(contains(time["notes"][0].get<std::string>(), "declared: samples seen in an epoch 120 against 40"));
}

TEST_CASE("compare's JSON has margins, means and runs, and all digits of p") {
  const Filled yard(0.5);
  const Outcome said = yard.asks("compare --format json");
  REQUIRE_MESSAGE(said.code == 0, said.out);
  const auto object = nlohmann::json::parse(said.out);
  CHECK(object.at("format") == 1);
  CHECK(object.at("name") == "demo");
  CHECK(object.at("comparisons").at(0).at("planned") == true);
  const auto& compare = object.at("comparisons").at(0).at("compare");
  CHECK(compare.at("axis") == "strategy");
  CHECK(compare.at("baseline") == "single");
  CHECK(compare.at("pair") == nlohmann::json::array({"seed"}));
  CHECK(compare.at("alpha") == 0.05);
  CHECK(compare.at("margins").at("time") == 1.05);
  CHECK(compare.at("margins").at("accuracy_points") == 0.5);
  const auto time = of_metric(object, "train-seconds");
  // single takes 2, 2.01, 2.02 seconds, and ddp 1, 1.01, 1.02.
  CHECK(time.at("baseline_mean").get<double>() == doctest::Approx(2.01).epsilon(1e-12));
  CHECK(time.at("arm_mean").get<double>() == doctest::Approx(1.01).epsilon(1e-12));
  CHECK(time.at("first_look") == time.at("n"));
  CHECK(time.at("last_look") == time.at("n"));
  CHECK(time.at("alpha") == 0.05);
  nlohmann::json keys = nlohmann::json::array();
  for (std::size_t i = 0; i < 3; ++i) keys.push_back(experiments::run_key(yard.runs[i]));
  CHECK(time.at("baseline_runs") == keys);
  CHECK(time.at("arm_runs").size() == 3);
  CHECK(time.at("arm_runs").at(0) == experiments::run_key(yard.runs[3]));

  // Student's t with two degrees of freedom has a closed form: P(T >= t) = 1/2 - t / (2 sqrt(2 + t^2)). Twice
  // this, without the difference of nearly equal numbers, is 2 / (r (r + t)) with r = sqrt(2 + t^2).
  std::vector<double> differences;
  for (const double seed : {0.0, 1.0, 2.0})
    differences.push_back(std::log((2 + 0.01 * seed) / (1 + 0.01 * seed)));
  const double mean = (differences[0] + differences[1] + differences[2]) / 3;
  double squares = 0;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const double t = (mean - std::log(1.05)) / std::sqrt(squares / 2 / 3);
  const double r = std::sqrt(2 + t * t);
  CHECK(time.at("hypothesis") == "better than the margin");
  CHECK(time.at("p").get<double>() == doctest::Approx(2 / (r * (r + t))).epsilon(1e-9));

  const Outcome back = yard.asks("compare strategy=ddp strategy=single --differs samples --format json");
  CHECK(nlohmann::json::parse(back.out).at("comparisons").at(0).at("planned") == false);
}

TEST_CASE("report --from makes the same files from a report.json, without a yard") {
  const Filled yard(0.5);
  const std::string formats = " --format html,json,csv,latex,markdown,svg --out ";
  const auto folder = [&](const char* name) { return (yard.folder / name).string(); };
  REQUIRE(yard.asks("report" + formats + folder("first")).code == 0);
  const std::string from = "report --from " + folder("first/report.json");
  const Outcome again = trainyard_says(from + formats + folder("second"));
  REQUIRE_MESSAGE(again.code == 0, again.out);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder("first"))) {
    if (!entry.is_regular_file()) continue;
    const auto relative = std::filesystem::relative(entry.path(), folder("first"));
    CHECK_MESSAGE(read_text(entry.path()) == read_text(yard.folder / "second" / relative), relative);
    ++files;
  }
  CHECK(files > 20);
  checked(trainyard_says(from), 2, "--out");
  const Outcome both = trainyard_says(from + " demo --out " + folder("third"));
  CHECK(both.code == 2);
  checked(trainyard_says("report --from " + folder("none.json") + " --out " + folder("third")), 2,
          "none.json cannot be read: ");
}

TEST_CASE("help names the arguments of a verb, with an ellipsis only if there is no limit") {
  const Filled yard(1);
  CHECK(contains(yard.asks("compare --help").out, "Usage: trainyard compare [OPTIONS] [A B]\n"));
  CHECK(contains(yard.asks("report --help").out, "Usage: trainyard report [OPTIONS] [EXPERIMENT...]\n"));
}

TEST_CASE("compare exits with 3 if a metric deteriorates and --fail-on includes this") {
  const Filled slower(1.5);
  CHECK(slower.asks("compare --fail-on deteriorates").code == 3);
  CHECK(slower.asks("compare").code == 0);
  CHECK(Filled(0.5).asks("compare --fail-on deteriorates").code == 0);
}

TEST_CASE("a gate on deteriorates fails if runs of the arm are missing, and names the arm") {
  const Filled yard(1, 3);
  CHECK(yard.asks("compare").code == 0);
  checked(yard.asks("compare --fail-on deteriorates"), 3, "fails --fail-on deteriorates: MLP ddp: INTERIM (");
  CHECK(yard.asks("compare --fail-on missing").code == 3);
  CHECK(yard.asks("compare --fail-on broken,not-comparable").code == 0);
}

TEST_CASE("--fail-on takes a list, and the error for an unknown word suggests the nearest one") {
  const Filled yard(1.5);
  CHECK(yard.asks("compare --fail-on broken,deteriorates").code == 3);
  CHECK(yard.asks("compare --fail-on broken --fail-on deteriorates").code == 3);
  CHECK(yard.asks("compare --fail-on broken,missing").code == 0);
  checked(yard.asks("compare --fail-on broken,detriorates"), 2, "did you mean \"deteriorates\"?");
}

TEST_CASE("--metric restricts the gate and the output, and changes no verdict and no p-value") {
  const Filled yard(1.5);  // only times deteriorate
  CHECK(yard.asks("compare --fail-on deteriorates").code == 3);
  CHECK(yard.asks("compare --metric accuracy --fail-on deteriorates").code == 0);
  CHECK(yard.asks("compare --metric accuracy --metric train-loss --fail-on deteriorates").code == 0);
  CHECK(yard.asks("compare --metric accuracy,train_seconds --fail-on deteriorates").code == 3);
  const auto verdicts = [&](const std::string& option) {
    const Outcome said = yard.asks("compare --format json " + option);
    REQUIRE_MESSAGE(said.code == 0, said.out);
    return first_cell(nlohmann::json::parse(said.out)).at("verdicts");
  };
  const auto all = verdicts("");
  for (const std::string phase : {"", "train-", "validation-", "test-"})
    for (const std::string metric : {"accuracy", "loss", "seconds"}) {
      const std::string name = phase + metric;
      auto wanted = nlohmann::json::array();
      for (const auto& verdict : all)
        if (const auto one = verdict["metric"].get<std::string>();
            one == name || (phase.empty() && one.ends_with("-" + metric)))
          wanted.push_back(verdict);
      if (wanted.empty()) continue;  // there are no seconds of the test
      CHECK(verdicts("--metric " + name) == wanted);
    }
  CHECK(verdicts("--metric time") == verdicts("--metric seconds"));
  const std::string table = yard.asks("compare --metric test-loss").out;
  CHECK(contains(table, "test loss"));
  for (const char* other : {"train loss", "accuracy", "seconds", "slower"})
    CHECK_MESSAGE(!contains(table, other), table);
}

TEST_CASE("a metric that does not exist, or that no arm has, is an error of compare --metric") {
  const Filled yard(1);
  const auto refused = [&](const std::string& metric, const std::string& error) {
    checked(yard.asks("compare --fail-on deteriorates --metric " + metric), 2, error);
  };
  refused("acuracy", "there is no metric \"acuracy\"; did you mean \"accuracy\"?");
  refused("test_acuracy", "did you mean \"test-accuracy\"?");
  refused("speed", "there is no metric \"speed\"; choose from time, ");
  refused("test-seconds", "there is no metric \"test-seconds\"");
  refused("bleu", "nothing to compare: no arm has a verdict on test-bleu; leave out --metric");
}

TEST_CASE("two groups are given as values of the axis, as conditions or as keys") {
  const Filled yard(0.5);
  for (const std::string& groups : {std::string("single ddp"), std::string("strategy=single strategy=ddp")}) {
    checked(yard.asks("compare " + groups + " --format csv"), 0,
            "strategy,single,MLP,ddp,train-seconds,IMPROVES");
  }
  // The file does not plan the opposite direction.
  const Outcome back = yard.asks("compare strategy=ddp strategy=single --differs samples --format json");
  REQUIRE_MESSAGE(back.code == 0, back.out);
  const auto time = of_metric(nlohmann::json::parse(back.out), "train-seconds");
  CHECK(time["verdict"] == "DETERIORATES");
  CHECK(time["caveats"][0]["mark"] == "EXPLORATORY");
  const Outcome keys = yard.asks("compare " + experiments::run_key(yard.runs[0]) + " " +
                                 experiments::run_key(yard.runs[3]) + " --differs samples --format json");
  REQUIRE_MESSAGE(keys.code == 0, keys.out);
  const auto one = of_metric(nlohmann::json::parse(keys.out), "train-seconds");
  CHECK(one["effect"].get<double>() == doctest::Approx(-50));
  CHECK(one["verdict"] == "INCONCLUSIVE");
  CHECK(one["ci95"].is_null());
  CHECK(contains(one["reason"]["text"].get<std::string>(), "at least 3 are needed"));
}

TEST_CASE("the error for invalid groups names the allowed values") {
  const Filled yard(0.5);
  CHECK(contains(yard.asks("compare single dpp").out, "give a value of strategy (single, ddp)"));
  CHECK(contains(yard.asks("compare strategie=single ddp").out, "did you mean"));
  CHECK(contains(yard.asks("compare strategy=single seed=0").out, "is in both groups"));
  CHECK(yard.asks("compare single").code == 2);
  CHECK(contains(yard.asks("compare single single --fail-on deteriorates").out, "is in both groups"));
  CHECK(contains(yard.asks("compare single ddp --differs batsh").out, "did you mean \"batch\""));
}

TEST_CASE("the error for a mistyped verb or option suggests the nearest one") {
  CHECK(contains(trainyard_says("compre").out, "there is no command \"compre\"; did you mean \"compare\"?"));
  CHECK(contains(trainyard_says("db bakup").out, "there is no command \"bakup\"; did you mean \"backup\"?"));
  CHECK(contains(trainyard_says("status --runz").out,
                 "there is no option \"--runz\"; did you mean \"--runs\"?"));
  CHECK(contains(trainyard_says("run x.toml --max-retrys=3").out, "did you mean \"--max-retries\"?"));
  CHECK(contains(trainyard_says("--verson").out, "did you mean \"--version\"?"));
  CHECK(contains(trainyard_says("status one two").out, "unexpected argument \"two\" for `status`"));
  CHECK(contains(trainyard_says("").out, "Usage: trainyard [OPTIONS] COMMAND\n"));
  for (const char* wrong : {"compre", "db bakup", "status --runz", "status one two", "--verson"})
    CHECK_MESSAGE(trainyard_says(wrong).code == 2, wrong);
  CHECK(trainyard_says("db --help").code == 0);
}

TEST_CASE("a data directory that is not a folder is an error") {
  checked(trainyard_says("data verify --data /no/such/folder"), 2, "/no/such/folder is not a folder");
}

TEST_CASE("tables of verdicts come as aligned text, Markdown and LaTeX") {
  const Filled yard(0.5);
  CHECK(contains(yard.asks("compare").out, "95 % interval"));
  CHECK(contains(yard.asks("compare --format markdown").out,
                 "| MLP | ddp | train seconds | IMPROVES | −49.8 %"));
  const std::string latex = yard.asks("compare --format latex").out;
  CHECK(contains(latex, "{MLP: ddp} "));
  CHECK(contains(latex, "All effects against single"));
  CHECK(contains(latex, "Training time per epoch & IMPROVES & $-$49.8 \\%"));
  CHECK(contains(latex, "95 \\% interval"));
  CHECK(contains(latex, "\\bottomrule"));
}

TEST_CASE("an export of an unknown experiment does not change an existing file") {
  const Filled yard(0.5);
  const auto file = yard.folder / "results.csv";
  std::ofstream(file) << "older";
  CHECK(yard.asks("export --experiment dema --out '" + std::string(file) + "'").code == 2);
  CHECK(std::filesystem::file_size(file) == 5);
}

TEST_CASE("export writes each row of a view as CSV or as one JSON object per line") {
  const Filled yard(0.5);
  const std::string csv = yard.asks("export").out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 6 * 3);
  CHECK(csv.starts_with("run_key,experiment,model,strategy,seed,epoch,train_loss"));
  const std::string lines = yard.asks("export final --format jsonl").out;
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 6);
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  CHECK(first["model"] == "mlp");
  CHECK(first["test_accuracy"].get<double>() == doctest::Approx(0.9));
  CHECK(yard.asks("export runs --out '" + (yard.folder / "runs.csv").string() + "'").code == 0);
  CHECK(std::filesystem::file_size(yard.folder / "runs.csv") > 500);
}
