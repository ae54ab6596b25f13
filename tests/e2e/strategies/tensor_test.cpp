// Runs whose layers are split over ranks, through the real programs.
#include <doctest/doctest.h>

#include "tests/e2e/strategies/query_rows.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

const std::string parts = R"([strategy.three]
kind = "tensor"
tensor = 3
tensor_split = [1, 3, 5]
[strategy.hybrid]
kind = "tensor"
replicas = 2
stages = 2
tensor_split = { width = 2 }
[compare]
axis = "strategy"
baseline = "single"
[machine]
exclusive = "devices"
)";

}  // namespace

TEST_CASE("tensor parts train what one process trains, and their records count once") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(2, R"("single", "tensor", "three", "hybrid")", 1) +
                                  "save = \"last\"\ncheckpoint = \"epoch\"\n" + parts);
  const auto plan = scratch.at({"plan", "small.toml"});
  CHECK(contains(plan.out, "split of mlp tensor: layers 1 (columns), 3 (rows)"));
  CHECK(contains(plan.out, "split of mlp three: layers 1 (columns), 3 (rows), 5 (columns, gathered)"));
  CHECK(contains(plan.out, "split of mlp hybrid: layers 1 (columns), 3 (rows), 5 (columns, gathered)"));
  CHECK(contains(plan.out, "stages of mlp hybrid: layers 0-"));
  const auto selected = scratch.at({"plan", "small.toml", "--where", "tensor_split={ width = 2 }"}).out;
  CHECK(contains(selected, "mlp hybrid"));
  CHECK_FALSE(contains(selected, "mlp three"));
  const auto run = scratch.at({"run", "small.toml"});
  CHECK_MESSAGE(run.code == 0, (run.out + run.err));
  CHECK(rows_of(scratch, "SELECT strategy, replicas, stages, tensor, status FROM run_summary ORDER BY 1") ==
        "[\"hybrid\",2,2,2,\"finished\"]\n[\"single\",1,1,1,\"finished\"]\n[\"tensor\",1,1,2,\"finished\"]\n["
        "\"three\",1,1,3,\"finished\"]\n");
  // all parts are one replica, which has its samples once
  CHECK(
      rows_of(scratch, "SELECT strategy, MAX(replica), COUNT(*) FROM epoch_replica GROUP BY 1 ORDER BY 1") ==
      "[\"hybrid\",1,4]\n[\"single\",0,2]\n[\"tensor\",0,2]\n[\"three\",0,2]\n");
  CHECK(rows_of(scratch,
                "SELECT COUNT(DISTINCT weight) FROM epoch_mean WHERE phase = 'train' AND name = 'loss'") ==
        "[1]\n");
  CHECK(rows_of(
            scratch,
            "SELECT MAX(validation_loss) - MIN(validation_loss) < 1e-5 FROM epoch_average GROUP BY epoch") ==
        "[1]\n[1]\n");
  const auto compared = scratch.at({"compare"});
  CHECK_FALSE(contains(compared.out, "NOT COMPARABLE"));
  CHECK_FALSE(contains(compared.out, "BROKEN"));
  const auto page = tests::read_text(scratch.path() / "yard/reports/small/index.html");
  CHECK(contains(page, "3 parts"));
  CHECK(contains(page, "2 replicas × 2 stages × 2 parts"));
  CHECK(contains(page, "id=\"figure-mlp-timeline\""));
}

TEST_CASE("a layer that cannot be split is refused at its place, and nothing starts") {
  const Scratch scratch;
  std::string file = sweep_file(2, R"("three")", 1) + parts.substr(0, parts.find("[compare]"));
  file.replace(file.find("[1, 3, 5]"), 9, "[0, 1]");
  scratch.write("small.toml", file);
  checked_error(scratch.at({"run", "small.toml"}), 2,
                "layer 0 (flatten) cannot be split; tensor_split may name 1, 3");
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "yard/runs"));
}
