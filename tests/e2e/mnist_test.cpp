// Acceptance test with real images: experiments/mnist.toml as shipped.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// Mean test accuracy in points, by strategy.
std::map<std::string, double> mean_test_accuracy(const db::Database& database) {
  std::map<std::string, double> sum, count;
  for (const auto& run : db::final_metrics(database, "mnist")) {
    sum[run.strategy] += 100 * run["test_accuracy"];
    count[run.strategy] += 1;
    CHECK(run["test_accuracy"] > 0.92);
    CHECK(run.epochs <= 10);
  }
  for (auto& [strategy, value] : sum) value /= count[strategy];
  return sum;
}

}  // namespace

TEST_CASE("MNIST reaches more than 92 % in ten epochs, and two replicas train like one device") {
  const auto data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch scratch;
  const auto output = scratch.at({"run", TRAINYARD_SOURCE "/experiments/mnist.toml", "--data", data});
  REQUIRE_MESSAGE(output.code == 0, output.err);
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto accuracy = mean_test_accuracy(database);
  REQUIRE(accuracy.size() == 2);
  CHECK(std::abs(accuracy.at("single") - accuracy.at("ddp")) <= 0.5);

  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::string, double>> losses;
  for (const auto& row : db::epoch_averages(database, "mnist"))
    if (row.epoch <= 3) losses[{row.seed, row.epoch}][row.strategy] = row["train_loss"];
  REQUIRE(losses.size() == 9);
  for (const auto& [at, loss] : losses)
    CHECK(loss.at("ddp") == doctest::Approx(loss.at("single")).epsilon(1e-3));
}
