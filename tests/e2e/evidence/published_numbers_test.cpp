// Experiments with tables of published numbers, in a reduced form on real data: the numbers are those of the database.
#include <cmath>
#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

constexpr const char* mnist_instead =
    "other data than the study: mnist (200 training samples), not fashion-mnist";

nlohmann::json numbers_of(const Scratch& scratch) {
  const auto compared = scratch.at({"compare", "--format", "json"});
  REQUIRE_MESSAGE(compared.code == 0, compared.err);
  return nlohmann::json::parse(compared.out).at("published_numbers");
}

// The row of an end of its text and a metric.
nlohmann::json row(const nlohmann::json& numbers, const std::string& what, const std::string& metric) {
  for (const nlohmann::json& number : numbers)
    if (number["what"].get<std::string>().ends_with(what) && number["metric"] == metric) return number;
  FAIL("no row " << what << ", " << metric);
  return {};
}

bool has_remark(const nlohmann::json& number, const std::string& text) {
  for (const nlohmann::json& remark : number["remarks"])
    if (contains(remark.get<std::string>(), text)) return true;
  return false;
}

// Training accuracies of the runs with these settings by seed, in points.
std::map<std::int64_t, double> accuracies(const Scratch& scratch,
                                          const std::map<std::string, std::string>& settings) {
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  std::map<std::int64_t, double> values;
  for (const db::RunSummary& run : db::run_summaries(database)) {
    bool wanted = run.status == "finished";
    for (const auto& [name, value] : settings)
      wanted = wanted && (name == "strategy" ? run.strategy : to_text(run.axes.at(name))) == value;
    for (const db::FinalMetrics& final : db::final_metrics(database, run.experiment))
      if (wanted && final.run_key == run.run_key) values[run.seed] = 100 * final["train_accuracy"];
  }
  REQUIRE(values.size() == 2);
  return values;
}

double percentage(const std::map<std::int64_t, double>& arm, const std::map<std::int64_t, double>& baseline) {
  double sum = 0;
  for (const auto& [seed, value] : arm) sum += std::log(value / baseline.at(seed));
  return 100 * std::exp(sum / static_cast<double>(arm.size()));
}

bool without_data(const std::string& data) {
  if (data.empty()) MESSAGE("skipped: no real data; set TRAINYARD_DATA");
  return data.empty();
}

}  // namespace

TEST_CASE(
    "the parameter study prints published percentages beside those of its pairs, and other data is named") {
  const auto data = real_data();
  if (without_data(data)) return;
  const Scratch scratch;
  for (const char* file : {"parallel-ml-two-cores", "parallel-ml"}) {
    CAPTURE(file);
    std::filesystem::remove_all(scratch.path() / "yard");
    std::vector<std::string> arguments{
        "run",    TRAINYARD_SOURCE "/experiments/" + std::string(file) + ".toml",
        "--data", data,
        "--set",  "dataset=mnist",
        "--set",  "train_samples=200"};
    for (const char* where : {"seed=0", "seed=1", "threads=1", "epochs=1", "epochs=5"})
      arguments.insert(arguments.end(), {"--where", where});
    const auto output = scratch.at(arguments);
    REQUIRE_MESSAGE(output.code == 0, output.err);
    CHECK_MESSAGE(contains(output.out, "Other data than the study: mnist, not fashion-mnist."), output.out);
    const nlohmann::json numbers = numbers_of(scratch);
    const auto base = accuracies(scratch, {{"hidden", "[32]"}, {"epochs", "1"}});
    const auto neurons = row(numbers, "hidden [128]", "Training accuracy");
    CHECK(neurons["published"] == 101.5);
    CHECK(neurons["here"][1].get<double>() ==
          doctest::Approx(percentage(accuracies(scratch, {{"hidden", "[128]"}}), base)));
    CHECK(has_remark(neurons, mnist_instead));
    const auto epochs = row(numbers, "epochs 5", "Training accuracy");
    CHECK(epochs["published"] == 103.9);
    CHECK(epochs["here"][1].get<double>() ==
          doctest::Approx(percentage(accuracies(scratch, {{"epochs", "5"}}), base)));
    const auto time = row(numbers, "epochs 5", "Total training time");
    CHECK(time["published"] == 445.4);
    CHECK(time["verdict"] == "INCONCLUSIVE");  // two seeds
    CHECK_MESSAGE(contains(output.out, "train total seconds"), output.out);
    const auto sequential = row(numbers, "whole run", "Training accuracy");
    CHECK(sequential["here"][1].get<double>() == doctest::Approx((base.at(0) + base.at(1)) / 2));
    CHECK(sequential["sd"].get<double>() ==
          doctest::Approx(std::abs(base.at(0) - base.at(1)) / std::sqrt(2.0)));
    CHECK(sequential["published"].get<double>() == doctest::Approx(86.864));
  }
}

TEST_CASE("flowers are found in the data directory, and each published epoch is beside ours") {
  const auto data = real_data();
  if (without_data(data)) return;
  const Scratch scratch;
  const auto output =
      scratch.at({"run", TRAINYARD_SOURCE "/experiments/parallel-ml-flowers.toml", "--data", data, "--set",
                  "image_size=16", "--set", "train_samples=64", "--where", "seed=0", "--where", "seed=1"});
  REQUIRE_MESSAGE(output.code == 0, output.err);
  const auto base = accuracies(scratch, {{"strategy", "single"}, {"epochs", "5"}});
  const nlohmann::json numbers = numbers_of(scratch);
  const auto last = row(numbers, "flowers: epoch 5", "Training accuracy");
  CHECK(last["published"] == 96.66);
  CHECK(last["here"][1].get<double>() == doctest::Approx((base.at(0) + base.at(1)) / 2));
  CHECK(row(numbers, "epochs 1, strategy ddp", "Total training time")["published"] == 36.17);
  CHECK(row(numbers, "epochs 3, strategy ddp", "Total training time")["published"] == 29.97);
  CHECK(has_remark(last, "not known whether the pictures are those of the study"));
  const auto report = scratch.at({"report", "--format", "csv", "--out", "r"});
  REQUIRE_MESSAGE(report.code == 0, report.err);
  const std::string csv = tests::read_text(scratch.path() / "r/tables/published-numbers.csv");
  CHECK_MESSAGE(contains(csv, "flowers: epoch 1,Training accuracy,%,61.24,"), csv);
}
