#include "runner/trainer/strategy.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/named_row.h"

namespace trainyard::runner {

namespace {

constexpr std::array strategies{
    Strategy{"single", false, false}, Strategy{"ddp", true, false},
    Strategy{"mp", false, true},      Strategy{"pipeline", false, true},
    Strategy{"mp-ddp", true, true},   Strategy{"independent", true, false, false}};

std::string mesh_text(const experiments::Strategy& strategy) {
  return std::to_string(strategy.replicas) + " replicas × " + std::to_string(strategy.stages) + " stages";
}

}  // namespace

const Strategy& find_strategy(std::string_view kind) {
  return models::named_row(strategies, &Strategy::kind, "strategy", kind);
}

Mesh mesh_of(const experiments::Strategy& strategy, int world_size) {
  const Strategy& row = find_strategy(strategy.kind);
  if ((strategy.replicas > 1 && !row.replicas) || (strategy.stages > 1 && !row.stages)) {
    throw UserError(
        "strategy " + strategy.name + " is " + row.kind + ", which cannot have " + mesh_text(strategy),
        "mp-ddp has both");
  }
  if (strategy.world_size() != world_size) {
    throw UserError("strategy " + strategy.name + " has " + mesh_text(strategy) + ", but WORLD_SIZE is " +
                        std::to_string(world_size),
                    "start one process a rank");
  }
  return {static_cast<int>(strategy.replicas), static_cast<int>(strategy.stages)};
}

StageLayers layers_of_stage(const experiments::Strategy& strategy, int stage, std::size_t layers) {
  const auto count = static_cast<std::int64_t>(layers);
  if (strategy.stages > count) {
    throw UserError("strategy " + strategy.name + " has " + std::to_string(strategy.stages) +
                        " stages, but the model has " + std::to_string(layers) + " layers",
                    "use at most " + std::to_string(layers) + " stages");
  }
  std::vector<std::int64_t> starts{0};
  starts.insert(starts.end(), strategy.boundaries.begin(), strategy.boundaries.end());
  starts.push_back(count);
  const bool ascending =
      std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
  if (static_cast<std::int64_t>(starts.size()) != strategy.stages + 1 || !ascending) {
    throw UserError("the boundaries of strategy " + strategy.name + " do not cut " + std::to_string(layers) +
                        " layers into " + std::to_string(strategy.stages) + " stages",
                    "give the first layer of each stage but the first, ascending");
  }
  const auto s = static_cast<std::size_t>(stage);
  return {static_cast<std::size_t>(starts[s]), static_cast<std::size_t>(starts[s + 1])};
}

}  // namespace trainyard::runner
