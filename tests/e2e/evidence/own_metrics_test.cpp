// Metrics of the user, from records of two shell arms to words, tables, files, exports and expectations.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// The rewards of the test are −3 + seed for `one`, and 2 or 3 more for `many`. Those of validation are the same times the
// number of the epoch.
// Tokens per second grow with the epoch: their median without the first epoch is 104 per rank.
constexpr const char* recording = R"sh(
reward=$(($3 + seed + (WORLD_SIZE - 1) * (seed % 2))); unit=${UNIT:-points}
own() { printf '{"phase":"%s","name":"%s","sum":%s,"weight":1}' "$1" "$2" "$3"; }
for number in 1 2 3 4 5 6; do
  record epoch "\"epoch\":$number,\"train_seconds\":0.001,\"validation_seconds\":0,\"metrics\":[{\"phase\":\"train\",\"name\":\"loss\",\"sum\":5,\"weight\":10},$(own train tokens_per_second $((100 + number))),$(own validation reward $((reward * number)))]"
done
record test "\"seconds\":0,\"metrics\":[$(own test reward $reward)]"
record start "\"pid\":1,\"metrics\":{\"tokens_per_second\":{\"unit\":\"1/s\",\"better\":\"higher\",\"combine\":\"sum\"},\"reward\":{\"unit\":\"$unit\",\"better\":\"higher\"}}"
finish
)sh";

std::string file(const std::string& more) {
  return R"(name = "arms"
[matrix]
model = ["mlp"]
strategy = ["one", "many"]
seed = { count = 4 }
[defaults]
dataset = "synthetic-digits"
epochs = 6
[compare]
baseline = "one"
differs = ["samples"]
[strategy.one]
command = ["/bin/sh", "arm.sh", "{seed}", "x", "-3"]
[strategy.many]
command = ["/bin/sh", "arm.sh", "{seed}", "x", "-1"]
replicas = 2
)" + more;
}

struct Sweep : Scratch {
  Output run;
  explicit Sweep(const std::string& more) {
    write("arm.sh", shell_arm(recording));
    write("arms.toml", file(more));
    run = at({"run", "arms.toml"});
  }
  std::string out(const std::vector<std::string>& arguments) const {
    return checked_output(at(arguments), 0, "").out;
  }
};

constexpr const char* reward = "[metric.reward]\nunit = \"points\"\nbetter = \"higher\"\nmargin = 0.5\n";

}  // namespace

TEST_CASE("a metric of the user is judged, drawn, expected and exported like those of trainyard") {
  const Sweep sweep(std::string(reward) + "[expect.mlp]\ntest_reward = -1.5\n");
  CHECK(sweep.run.code == 1);
  CHECK(contains(sweep.run.err, "has test_reward −3.000, expected of mlp: test_reward >= -1.5"));

  const auto compared =
      nlohmann::json::parse(sweep.out({"compare", "--metric", "reward", "--format", "json"}));
  const auto& verdicts = compared.at("comparisons").at(0).at("cells").at(0).at("verdicts");
  REQUIRE(verdicts.size() == 2);
  for (const auto& verdict : verdicts) {  // of the last epoch, and of the test; in the unit of the metric
    const bool of_test = verdict.at("metric") == "test-reward";
    CHECK(verdict.at("verdict") == "IMPROVES");
    CHECK(verdict.at("effect").get<double>() == doctest::Approx(of_test ? 2.5 : 15));
    CHECK(verdict.at("margin") == nlohmann::json({-0.5, 0.5}));
    CHECK(verdict.at("baseline_mean").get<double>() == doctest::Approx(of_test ? -1.5 : -9));
  }
  CHECK(contains(sweep.out({"compare", "--metric", "test-reward"}), "+2.50 points"));

  const std::string final = sweep.out({"export", "final", "--format", "jsonl"});
  CHECK(contains(
      final, R"("validation_reward":0.0,"test_reward":0.0,"train_tokens_per_second":104.0)"));  // one, seed 3
  CHECK(contains(final, R"("train_tokens_per_second":208.0)"));  // the sum of two ranks
  CHECK(contains(sweep.out({"export", "epochs", "--format", "jsonl"}), R"("validation_reward":-15.0)"));

  const std::string page = tests::read_text(sweep.path() / "yard/reports/arms/index.html");
  for (const char* part : {"Test reward", "higher is better, margin ±0.5 points", "mlp-validation-reward",
                           "mlp-train-tokens-per-second"})
    CHECK_MESSAGE(contains(page, part), part);
  REQUIRE(sweep.at({"report", "--from", "yard/reports/arms/report.json", "--out", "again"}).code == 1);
  CHECK(tests::read_text(sweep.path() / "again/index.html") == page);
}

TEST_CASE("the SQL of a figure of a metric of the user gives its numbers") {
  const Sweep sweep(reward);
  REQUIRE_MESSAGE(sweep.run.code == 0, (sweep.run.out + sweep.run.err));
  sweep.out({"report", "arms", "--format", "csv", "--out", "files"});
  const std::string key = sweep.out(
      {"sql", "--format", "csv", "SELECT run_key FROM run_summary WHERE strategy = 'many' AND seed = 0"});
  CHECK(contains(sweep.out({"show", key.substr(key.find('\n') + 1, 12)}), "test reward -1.0000 points"));
  const std::string page = tests::read_text(sweep.path() / "yard/reports/arms/index.html");
  const std::size_t begin = page.find("WITH cell", page.find("id=\"figure-mlp-train-tokens-per-second\""));
  REQUIRE(begin != std::string::npos);
  std::string sql = page.substr(begin, page.find("</", begin) - begin);
  for (const auto& [escaped, text] : {std::pair("&#39;", "'"), {"&gt;", ">"}})
    for (std::size_t at = 0; (at = sql.find(escaped)) != std::string::npos;)
      sql.replace(at, std::string(escaped).size(), text);
  const std::string rows = sweep.out({"sql", "--format", "csv", sql});
  CHECK(contains(rows, "mlp,many,0,6,212"));
  CHECK(contains(rows, "mlp,one,0,1,101"));
}

TEST_CASE("runs that define a metric in another way than the file or the last run are left out, and named") {
  Sweep sweep("");
  const std::string in_cents = "env = { UNIT = \"cents\" }\n";
  sweep.write("arms.toml", file(in_cents));
  const Output last = sweep.at({"run", "arms.toml"});
  CHECK(contains(last.err + last.out,
                 "reward: left out of 8 runs, which give it another unit, direction or combination."));
  CHECK_FALSE(contains(last.out, "IMPROVES"));
  CHECK(contains(sweep.out({"compare", "one", "many", "--metric", "train-tokens-per-second"}), "+100.0 %"));
  sweep.write("arms.toml", file(in_cents + reward));
  const Output decided = sweep.at({"run", "arms.toml"});
  CHECK(contains(decided.err + decided.out, "reward: left out of 4 runs"));
}

TEST_CASE("a metric that can be negative has no word without a margin") {
  const Sweep sweep("");
  REQUIRE_MESSAGE(sweep.run.code == 0, (sweep.run.out + sweep.run.err));
  CHECK(contains(sweep.out({"compare", "--metric", "reward"}),
                 "NO DATA: a value is 0 or negative, so there is no ratio; [metric.reward] of the file needs "
                 "a margin before the first run"));
}

TEST_CASE("a wrong definition of a metric is left out, and the other members of the record count") {
  Scratch scratch;
  scratch.write(
      "arm.sh",
      shell_arm("epoch 1\nrecord start '\"pid\":7,\"metrics\":{\"bleu\":{\"better\":\"higher\"}}'\nfinish"));
  scratch.write("arms.toml", shell_arm_file("[1]"));
  REQUIRE(scratch.at({"run", "arms.toml", "--no-report"}).code == 0);
  CHECK(contains(scratch.at({"sql", "--format", "csv", "SELECT pid, start_extra FROM process"}).out, "7,\n"));
  CHECK(contains(scratch.at({"sql", "--format", "csv", "SELECT problem FROM extra_record"}).out,
                 "the name of metric bleu must not be"));
}
