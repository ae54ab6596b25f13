// Predicted and measured step times of a sweep's arms, from the file to the table.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

TEST_CASE("predict splits the steps of replicas and stages into parts, and names its inputs") {
  const Scratch scratch;
  const auto at = [&](const std::vector<std::string>& arguments) {
    return run_trainyard(scratch.path(), arguments);
  };
  scratch.write("small.toml", sweep_file(1, R"("single", "ddp", "pipeline", "mp-ddp")") + R"(
[strategy.pipeline]
stages = 2
schedule = "1f1b"
micro_batches = 4
[strategy.mp-ddp]
replicas = 2
stages = 2
schedule = "gpipe"
micro_batches = 2
)");
  const Output none = at({"predict", "small.toml"});
  CHECK(none.code == 2);
  CHECK(contains(none.err, "no results in "));
  const Output run = at({"run", "small.toml"});
  REQUIRE_MESSAGE(run.code == 0, run.err);

  const Output table = at({"predict", "small.toml"});
  REQUIRE_MESSAGE(table.code == 0, table.err);
  CHECK(contains(table.out, "mlp ddp: based on single on "));
  CHECK(contains(table.out,
                 "mlp mp-ddp: based on the gpipe schedule, simulated from the measured work of each rank"));
  CHECK_FALSE(contains(table.out, "not predicted"));
  CHECK(contains(at({"predict", "small.toml", "--format", "csv"}).out, "model,cell,arm,runs,error_percent,"));

  const Output answer = at({"predict", "small.toml", "--format", "json"});
  const auto arms = nlohmann::json::parse(answer.out);
  REQUIRE(arms.size() == 3);
  for (const auto& arm : arms) {
    CAPTURE(arm.dump());
    CHECK(arm.at("not_predicted") == "");
    for (const std::string what : {"predicted", "measured"}) {
      const double step = arm.at(what + "_step_seconds");
      CHECK(step > 0);
      double parts = 0;
      for (const char* part :
           {"input", "compute", "bubble", "transfer", "gradients", "optimizer", "core_wait", "other"})
        parts += arm.at(what + "_" + part + "_seconds").get<double>();
      // The parts are those of the mean rank, but the step is that of the slowest rank. On a busy machine the
      // two differ a lot.
      CHECK(parts > 0.99 * step / (arm.at("arm") == "mp-ddp" ? 4 : 2));
      CHECK(parts < 1.01 * step);
    }
  }
  CHECK(arms[0].at("arm") == "ddp");
  CHECK(arms[0].at("predicted_gradients_seconds").get<double>() ==
        doctest::Approx(arms[0].at("measured_gradients_seconds").get<double>()));
  CHECK(arms[1].at("arm") == "mp-ddp");
  CHECK(arms[2].at("arm") == "pipeline");
  CHECK(arms[2].at("predicted_bubble_seconds") > 0);
  CHECK(arms[2].at("predicted_compute_seconds").get<double>() ==
        doctest::Approx(arms[2].at("measured_compute_seconds").get<double>()));
}
