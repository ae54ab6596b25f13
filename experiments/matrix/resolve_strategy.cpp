#include "experiments/matrix/resolve_strategy.h"

#include <algorithm>

#include "experiments/config/vocabulary.h"

namespace trainyard::experiments {

namespace {

using Range = StrategyKind::Range;

// "mp, pipeline, mp-ddp": the kinds of which `part` may be more than one.
std::string kinds_with(Range StrategyKind::*part) {
  std::string names;
  for (const StrategyKind& kind : strategy_kinds())
    if ((kind.*part).any()) names += (names.empty() ? "" : ", ") + kind.name;
  return names;
}

std::string strategy_text(const RunSettings& settings) {
  std::string text = "strategy " + in_quotes(settings.strategy());
  if (settings.kind().name != settings.strategy()) text += " (" + settings.kind().name + ")";
  return text;
}

void check_number(const std::string& name, std::int64_t number, Range StrategyKind::*part,
                  const RunSettings& settings, Problems& problems) {
  const Range& range = settings.kind().*part;
  if (range.has(number)) return;
  const std::string allowed = range.any() ? ">= " + std::to_string(range.minimum) : "1";
  const std::string advice = range.any() ? "" : "; kinds with " + name + " are " + kinds_with(part);
  problems.error(settings.place(name), name + " of " + strategy_text(settings) + " must be " + allowed +
                                           ", is " + std::to_string(number) + advice);
}

// Texts of kinds that have none.
void check_texts(const RunSettings& settings, Problems& problems) {
  const auto refuse = [&](const std::string& name, Range StrategyKind::*part) {
    const Setting* found = settings.find(name);
    if (found == nullptr || (settings.kind().*part).any() ||
        found->value == models::Value(std::string("auto")))
      return;
    problems.error(found->at,
                   strategy_text(settings) + " has no " + name + "; kinds with one are " + kinds_with(part));
  };
  refuse("schedule", &StrategyKind::micro_batches);
  refuse("stage_split", &StrategyKind::stages);
}

void take_split(const RunSettings& settings, Strategy& strategy) {
  const Setting* split = settings.find("stage_split");
  if (split == nullptr) return;
  const auto* boundaries = std::get_if<std::vector<std::int64_t>>(&split->value);
  if (boundaries == nullptr) return;
  strategy.boundaries = *boundaries;
  strategy.split = "given";
}

std::int64_t stages_of(const RunSettings& settings, const Strategy& strategy) {
  const auto by_split = static_cast<std::int64_t>(strategy.boundaries.size()) + 1;
  const std::int64_t usual = strategy.split == "given" ? by_split : settings.kind().stages.fallback;
  return settings.optional_integer("stages").value_or(usual);
}

}  // namespace

Strategy resolve_strategy(const RunSettings& settings, Problems& problems) {
  const StrategyKind& kind = settings.kind();
  Strategy strategy;
  strategy.name = settings.strategy();
  strategy.kind = kind.name;
  if (kind.stages.any()) take_split(settings, strategy);
  strategy.replicas = settings.optional_integer("replicas").value_or(kind.replicas.fallback);
  strategy.stages = stages_of(settings, strategy);
  strategy.micro_batches = settings.optional_integer("micro_batches").value_or(kind.micro_batches.fallback);
  const Setting* schedule = settings.find("schedule");
  // The order of one micro-batch is the same under every schedule.
  if (kind.micro_batches.any() && strategy.micro_batches > 1)
    strategy.schedule = schedule ? std::get<std::string>(schedule->value) : kind.schedule;
  check_number("replicas", strategy.replicas, &StrategyKind::replicas, settings, problems);
  check_number("stages", strategy.stages, &StrategyKind::stages, settings, problems);
  check_number("micro_batches", strategy.micro_batches, &StrategyKind::micro_batches, settings, problems);
  check_texts(settings, problems);
  return strategy;
}

}  // namespace trainyard::experiments
