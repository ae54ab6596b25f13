// The cell, arm and pair of a run.
#include "experiments/design/cell_place.h"

#include <doctest/doctest.h>

#include "tests/experiments/run/example_runs.h"

namespace trainyard::experiments {
namespace {

using Values = std::map<std::string, Value>;
using Further = std::vector<std::pair<std::string, std::string>>;

const Values ddp{{"model", std::string("mlp")}, {"strategy", std::string("ddp")}, {"seed", std::int64_t{3}},
                 {"batch", std::int64_t{64}},   {"fold", std::int64_t{1}},        {"learning_rate", 0.1}};
const std::vector<std::string> varied{"model", "strategy", "learning_rate", "batch", "momentum", "seed"};

TEST_CASE("a cell has the model and every varied value except the axis, the pairing and the seed") {
  const CellPlace place = cell_place(text_in(ddp), Compare{}, varied);
  CHECK(place.model == "mlp");
  CHECK(place.further == Further{{"learning_rate", "0.1"}, {"batch", "64"}, {"momentum", ""}});
  CHECK(place.pair == "3");
  CHECK(place.arm == "ddp");
  CHECK(further_text(place) == "learning_rate 0.1, batch 64");
}

TEST_CASE("if models are compared they share a cell, and the strategy is one of its values") {
  Compare models;
  models.axis = "model";
  const CellPlace place = cell_place(text_in(ddp), models, {"model", "strategy", "seed"});
  CHECK(place.model.empty());
  CHECK(place.further == Further{{"strategy", "ddp"}});
  CHECK(place.arm == "mlp");
}

TEST_CASE("several values make a pair by their names, and an unpaired seed still makes no cell") {
  Compare compare;
  compare.pair = {"seed", "fold"};
  CHECK(cell_place(text_in(ddp), compare, varied).pair == "seed=3 fold=1");
  compare.pair.clear();
  const CellPlace unpaired = cell_place(text_in(ddp), compare, {"seed", "fold"});
  CHECK(unpaired.pair.empty());
  CHECK(unpaired.further == Further{{"fold", "1"}});
}

TEST_CASE("the cell of a run has all varied values, and model, strategy and seed are always known") {
  const CellPlace place = cell_place(cnn_ddp(), Compare{});
  CHECK(place.model == "cnn");
  CHECK(place.arm == "ddp");
  CHECK(place.pair == "0");
  CHECK(further_text(place) == "batch 64, hidden [128], optimizer adam, weight_decay 1e-4");
}

TEST_CASE("independent runs are a limit only if strategies are compared and they are not the baseline") {
  Compare compare;
  CHECK(is_limit(compare, "independent", "two at once"));
  CHECK_FALSE(is_limit(compare, "ddp", "ddp"));
  compare.baseline = "two at once";
  CHECK_FALSE(is_limit(compare, "independent", "two at once"));
  compare.axis = "batch";
  CHECK_FALSE(is_limit(compare, "independent", "64"));
}

}  // namespace
}  // namespace trainyard::experiments
