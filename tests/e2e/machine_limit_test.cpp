// The limit of the machine: independent runs at once, from the file to the figure, and the communicator.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

TEST_CASE("independent runs at once train like single, and the speed-up figure has them as the limit") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(3, R"("single", "ddp")") + R"(save = "last"
[[include]]
strategy = "independent"
seed = 0
[[include]]
strategy = "in-step"
seed = 0
)");
  const Output run = scratch.at({"run", "small.toml"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(contains(run.out, "6 runs finished"));
  CHECK_FALSE(contains(run.out, "independent  "));  // no verdict row

  const auto rows = [&](const std::string& sql) {
    const Output answer = scratch.at({"sql", sql, "--format", "json"});
    REQUIRE_MESSAGE(answer.code == 0, answer.err);
    return nlohmann::json::parse(answer.out);
  };
  // Bit by bit: a run's results depend neither on other ranks nor on its rank number.
  const std::string epochs =
      "SELECT DISTINCT epoch, train_loss, train_accuracy, validation_loss FROM epoch_rank WHERE seed = 0 AND "
      "strategy = ";
  CHECK(rows(epochs + "'independent' ORDER BY epoch") == rows(epochs + "'single' ORDER BY epoch"));
  CHECK(rows(epochs + "'independent'").size() == 3);
  CHECK(rows(epochs + "'in-step' ORDER BY epoch") == rows(epochs + "'single' ORDER BY epoch"));
  CHECK(rows("SELECT DISTINCT rank, replica, stage, world_size FROM process JOIN run USING (run_key) "
             "WHERE strategy_kind = 'independent' ORDER BY rank") ==
        nlohmann::json::parse(R"([{"rank": 0, "replica": 0, "stage": 0, "world_size": 2},
                                  {"rank": 1, "replica": 1, "stage": 0, "world_size": 2}])"));

  REQUIRE(scratch.at({"report", "--format", "csv", "--out", "csv"}).code == 0);
  // Runs this short can be more than twice as fast by chance. Then the page names them and draws no limit.
  const std::string page = tests::read_text(scratch.path() / "yard/reports/small/index.html");
  const bool impossible = contains(page, "2 independent runs at once were");
  CHECK(contains(tests::read_text(scratch.path() / "csv/figures/speed-up.csv"),
                 ",independent runs at once,2,") != impossible);
  CHECK(contains(page, "independent runs at once, the limit of the machine") != impossible);
  const Output asked =
      scratch.at({"compare", "single", "independent"});  // an explicit comparison is answered
  CHECK(contains(asked.out, "train seconds"));
}

TEST_CASE("ranks use the [machine] communicator, and another one is another circumstance") {
  const Scratch scratch;
  for (const std::string machine : {"auto", "gloo"}) {
    scratch.write("small.toml",
                  sweep_file(1, R"("ddp")", 1) + "[machine]\ncommunicator = \"" + machine + "\"\n");
    const Output run = scratch.at({"run", "small.toml", "--no-report"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
  }
  const Output used =
      scratch.at({"sql", "SELECT DISTINCT attempt, json_extract(start_extra, '$.transport') FROM process",
                  "--format", "csv"});
  CHECK(contains(used.out, "1,shared memory\n2,gloo\n"));
}
