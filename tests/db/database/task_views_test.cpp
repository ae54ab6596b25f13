// Metrics of single tasks, and ranks that are stages. The expected BLEU values come from sacreBLEU 2.5
// (tokenize = none, smooth_method = none) for the sentences behind the counts.
#include <cmath>

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>

#include "db/queries/queries.h"
#include "models/catalogue.h"
#include "tests/db/support/checked_yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

// Plans and launches `run`. Its model is not in the catalogue, so it can have any task.
void launch(Yard& yard, const experiments::Run& run, const std::string& task) {
  yard.plan({run});
  yard.ingest.run_file(experiments::to_json(make_launch(run)));
  yard.database.connection().exec("UPDATE run SET task = '" + task + "'");
}

experiments::Run mesh_run(std::int64_t replicas, std::int64_t stages) {
  auto run = make_run("something new", replicas, 0, 1);
  run.strategy.name = run.strategy.kind = "mp-ddp";
  run.strategy.stages = stages;
  return run;
}

std::vector<json> bleu_metrics(const std::vector<double>& matched, const std::vector<double>& candidates,
                               double length, double reference_length) {
  std::vector<json> metrics{metric("test", "bleu_length", length, reference_length)};
  for (std::size_t n = 0; n < matched.size(); ++n)
    metrics.push_back(metric("test", "bleu_" + std::to_string(n + 1), matched[n], candidates[n]));
  return metrics;
}

// A final metric of a run whose ranks record these test metrics.
double final_of(const std::string& task, const std::vector<std::vector<json>>& ranks, MetricColumn wanted) {
  CheckedYard yard;
  const auto run = mesh_run(static_cast<std::int64_t>(ranks.size()), 1);
  launch(yard, run, task);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RecordLog log(run, 1, static_cast<int>(rank));
    yard.ingest.record(log.next("epoch", epoch_body(1, 1, 1)));
    yard.ingest.record(log.next("test", {{"seconds", 0.5}, {"metrics", ranks[rank]}}));
    yard.ingest.record(log.next("end", end_body("finished", 6)));
  }
  return yard.final()[wanted];
}

double bleu_of(const std::vector<std::vector<json>>& ranks) {
  return final_of("translation", ranks, "test_bleu");
}

// Final metrics of a one-rank run with one epoch and these mean losses over 40 tokens or pixels.
FinalMetrics finals_of(const std::string& task, double train, double validation, double test) {
  CheckedYard yard;
  const auto run = mesh_run(1, 1);
  launch(yard, run, task);
  RecordLog log(run, 1, 0);
  yard.ingest.record(log.next("epoch", epoch_body(1, 1, 1,
                                                  {metric("train", "loss", 40 * train, 40),
                                                   metric("validation", "loss", 40 * validation, 40)})));
  yard.ingest.record(
      log.next("test", {{"seconds", 0.5}, {"metrics", {metric("test", "loss", 40 * test, 40)}}}));
  yard.ingest.record(log.next("end", end_body("finished", 6)));
  const EpochRow epoch = epoch_averages(yard.database, "sweep").at(0);
  FinalMetrics final = yard.final();
  CHECK(std::isnan(epoch["train_perplexity"]) == std::isnan(final["train_perplexity"]));
  CHECK(std::isnan(epoch["validation_psnr"]) == std::isnan(final["validation_psnr"]));
  return final;
}

}  // namespace

TEST_CASE("the perplexity of a translation is the exponential of its loss per token") {
  const FinalMetrics final = finals_of("translation", 2, std::log(50.0), 0);
  CHECK(final["train_perplexity"] == doctest::Approx(7.38905609893065));  // e²
  CHECK(final["validation_perplexity"] == doctest::Approx(50));
  CHECK(final["test_perplexity"] == doctest::Approx(1));
  CHECK(std::isnan(final["train_psnr"]));
}

TEST_CASE("a language model has the perplexity of a translation, and no BLEU") {
  const FinalMetrics final = finals_of("language-model", 2, std::log(50.0), 0);
  CHECK(final["train_perplexity"] == doctest::Approx(7.38905609893065));
  CHECK(final["test_perplexity"] == doctest::Approx(1));
  CHECK(std::isnan(final["test_bleu"]));
  CHECK(std::isnan(final["train_psnr"]));
}

TEST_CASE("a perplexity that overflows a double is not defined") {
  const FinalMetrics final = finals_of("translation", 800, 709.5, 708);
  CHECK(std::isnan(final["train_perplexity"]));
  CHECK(std::isnan(final["validation_perplexity"]));
  CHECK(std::isfinite(final["test_perplexity"]));
}

TEST_CASE("the PSNR of a reconstruction is 10 log10(1 / MSE), and not defined if the error is 0") {
  const FinalMetrics final = finals_of("reconstruction", 0.01, 0.5, 0);
  CHECK(final["train_psnr"] == doctest::Approx(20));
  CHECK(final["validation_psnr"] == doctest::Approx(3.0102999566398120));  // 10·log10(2)
  CHECK(std::isnan(final["test_psnr"]));
  CHECK(std::isnan(final["train_perplexity"]));
  CHECK(std::isnan(final["train_accuracy"]));  // there is no `correct` metric
}

TEST_CASE("the RMSE of a regression is in the unit of the target, from the sums of all ranks") {
  // Deviation 20. numpy: 20 * sqrt((0.5 * 30 + 0.2 * 10) / 40) = 13.038404810405298
  const auto of_rank = [](double loss, double weight) {
    return std::vector<json>{metric("test", "loss", loss * weight, weight),
                             metric("test", "deviation", 20, 1)};
  };
  CHECK(final_of("regression", {of_rank(0.5, 30), of_rank(0.2, 10)}, "test_rmse") ==
        doctest::Approx(13.038404810405298));
  CHECK(std::isnan(final_of("regression", {{metric("test", "loss", 5, 10)}}, "test_rmse")));
}

TEST_CASE("a classification has no perplexity, PSNR or BLEU") {
  const FinalMetrics final = finals_of("classification", 1, 1, 1);
  CHECK(std::isnan(final["test_perplexity"]));
  CHECK(std::isnan(final["test_psnr"]));
  CHECK(std::isnan(final["test_bleu"]));
}

TEST_CASE("BLEU is the corpus BLEU, from the sums of all ranks") {
  // Candidates: "the cat sat on the mat today" | "there is a dog in the garden", "he reads a book".
  const auto first = bleu_metrics({6, 5, 4, 3}, {7, 6, 5, 4}, 7, 6);
  const auto second = bleu_metrics({9, 4, 1, 0}, {11, 9, 7, 5}, 11, 17);
  CHECK(bleu_of({first}) == doctest::Approx(80.91067115702207).epsilon(1e-12));
  CHECK(bleu_of({first, second}) == doctest::Approx(38.88409727256947).epsilon(1e-12));
}

TEST_CASE("BLEU without a common 4-gram is 0, and with too few counts it is not defined") {
  CHECK(bleu_of({bleu_metrics({9, 4, 1, 0}, {11, 9, 7, 5}, 11, 17)}) == 0);
  CHECK(bleu_of({bleu_metrics({3, 2, 1, 0}, {3, 2, 1, 0}, 3, 9)}) == 0);  // no candidate has 4 words
  CHECK(std::isnan(bleu_of({bleu_metrics({6, 5, 4}, {7, 6, 5}, 7, 6)})));
  CHECK(std::isnan(bleu_of({{}})));
}

TEST_CASE("a run has its model's task from the catalogue, or no task if the model is not in it") {
  CheckedYard yard;
  std::vector<experiments::Run> runs{make_run("something new", 1, 0)};
  for (const models::Model& model : models::catalogue()) runs.push_back(make_run(model.name, 1, 0));
  yard.plan(runs);
  for (const models::Model& model : models::catalogue()) {
    const auto row = select(yard.database, "SELECT task FROM run WHERE model = '" + model.name + "'");
    CHECK(row.rows.at(0).at(0) == model.task);
  }
  CHECK(select(yard.database, "SELECT task FROM run WHERE model = 'something new'").rows.at(0).at(0) ==
        nullptr);
}

TEST_CASE("the last stage of a replica provides its metrics, and the slowest stage its times") {
  CheckedYard yard;
  const auto run = mesh_run(2, 2);
  launch(yard, run, "translation");
  const auto losses = [](double sum, double weight) {
    return std::vector<json>{metric("train", "loss", sum, weight), metric("validation", "loss", 2, 1)};
  };
  const std::vector<std::vector<json>> metrics{{}, losses(30, 10), {}, losses(10, 30)};
  const std::vector<double> seconds{4, 3, 5, 7};
  for (int rank = 0; rank < 4; ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    RecordLog log(run, 1, rank);
    yard.ingest.record(log.next("epoch", epoch_body(1, seconds[place], 1, metrics[place])));
    if (rank == 2) CHECK(epoch_replicas(yard.database, "sweep").size() == 1);  // replica 1 is incomplete
  }
  const auto replicas = epoch_replicas(yard.database, "sweep");
  REQUIRE(replicas.size() == 2);
  CHECK(replicas[0].replica == 0);
  CHECK(replicas[0]["train_loss"] == doctest::Approx(3));
  CHECK(replicas[0]["train_perplexity"] == doctest::Approx(std::exp(3)));
  CHECK(replicas[0]["train_seconds"] == 4);
  CHECK(replicas[1]["train_loss"] == doctest::Approx(1.0 / 3));
  CHECK(replicas[1]["train_seconds"] == 7);
  const EpochRow average = epoch_averages(yard.database, "sweep").at(0);
  CHECK(average["train_loss"] == doctest::Approx(40.0 / 40));
  CHECK(average["train_perplexity"] == doctest::Approx(std::exp(1)));
  CHECK(average["train_seconds"] == 7);
}

TEST_CASE("the same samples give the same metrics, whichever ranks are stages") {
  std::vector<double> losses;
  for (const std::int64_t stages : {1, 2, 4}) {
    Yard yard;
    const auto run = mesh_run(4 / stages, stages);
    launch(yard, run, "classification");
    for (int rank = 0; rank < 4; ++rank) {
      const bool last = rank % stages == stages - 1;
      const auto share = static_cast<double>(stages);
      RecordLog log(run, 1, rank);
      yard.ingest.record(
          log.next("epoch", epoch_body(1, 1, 1,
                                       last ? std::vector<json>{metric("train", "loss", 6 * share, 3 * share)}
                                            : std::vector<json>{})));
    }
    losses.push_back(epoch_averages(yard.database, "sweep").at(0)["train_loss"]);
  }
  CHECK(losses == std::vector<double>{2, 2, 2});
}
