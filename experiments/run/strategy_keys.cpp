// The keys of strategies: those of the mesh, and what depends on it.
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "experiments/run/key_rows.h"

namespace trainyard::experiments {

namespace {

bool has_stages(const Run& run) {
  return run.strategy.stages > 1;
}

bool has_servers(const Run& run) {
  return run.strategy.servers > 0;
}

bool has_parts(const Run& run) {
  return run.strategy.tensor > 1;
}

// Kinds with these keys may have one stage, or one part. For other kinds the keys are an error.
std::string unused_in_one_stage(const Run& run) {
  const StrategyKind* const kind = strategy_or_null(run.strategy.kind);
  return has_stages(run) || kind == nullptr || !kind->micro_batches.any() ? "" : "is not used by one stage";
}

std::string unused_by_one_part(const Run& run) {
  const StrategyKind* const kind = strategy_or_null(run.strategy.kind);
  return has_parts(run) || kind == nullptr || !kind->tensor.any() ? "" : "is not used by one part";
}

Parameter layers_row(const char* name, Bound minimum, std::size_t most, const char* meaning) {
  return {.name = name,
          .type = ValueType::integers,
          .fallback_text = "\"auto\"",
          .minimum = minimum,
          .minimum_length = 1,
          .maximum_length = most,
          .meaning = meaning};
}

// "ddp, mp-ddp 2; others 1": the default number of `part` of each kind.
std::string default_of_kinds(StrategyKind::Range StrategyKind::*part) {
  const std::int64_t others = (StrategyKind().*part).fallback;
  std::map<std::int64_t, std::vector<std::string>> names;  // by default
  for (const StrategyKind& kind : strategy_kinds())
    if ((kind.*part).fallback != others) names[(kind.*part).fallback].push_back(kind.name);
  std::string text;
  for (const auto& [number, kinds] : names) text += fmt::format("{} {}; ", joined(kinds), number);
  return text + fmt::format("others {}", others);
}

}  // namespace

std::vector<Key> strategy_keys() {
  std::vector<Key> rows{
      {.parameter = integer_row("replicas", from_one, Bound{1024},
                                "copies of the model; each trains on its share of the batch"),
       .of = &StrategyKind::replicas,
       .member = &Strategy::replicas,
       .original = true},
      {.parameter = integer_row("stages", from_one, Bound{1024},
                                "parts into which the layers of each copy are cut; one rank per part"),
       .of = &StrategyKind::stages,
       .member = &Strategy::stages,
       .original = true},
      {.parameter =
           integer_row("servers", from_zero, Bound{1024},
                       "ranks that hold the parameters and the state of the optimizer, in equal parts"),
       .of = &StrategyKind::servers,
       .member = &Strategy::servers,
       .has = has_servers},
      {.parameter =
           text_row("mode", {"sync", "async"},
                    "of servers. sync: they add the gradients of all replicas, as one device; async: they "
                    "apply each gradient of a whole batch at once, which is another algorithm"),
       .of = &StrategyKind::servers,
       .member = &Strategy::mode,
       .has = has_servers},
      {.parameter = integer_row(
           "staleness", from_zero, Bound{1'000'000},
           "mode \"async\": by how many updates a replica may be ahead of the slowest one", "no bound"),
       .place = KeyPlace::strategy,
       .member = &Strategy::staleness,
       .has = has_servers},
      {.parameter = text_row("placement", {"even", "whole"},
                             "of parameters on servers. even: each server has an equal part; whole: a "
                             "parameter is on one server, as in TensorFlow"),
       .of = &StrategyKind::servers,
       .member = &Strategy::placement,
       .has = has_servers},
      {.parameter = integer_row("min_replicas", from_one, Bound{1024},
                                "of ddp: the fewest replicas with which an attempt may resume, if devices "
                                "or ranks were lost",
                                "replicas"),
       .place = KeyPlace::strategy,
       .member = &Strategy::min_replicas,
       .has = [](const Run& run) { return run.strategy.min_replicas.has_value(); }},
      {.parameter = text_row(
           "sharding", {"optimizer", "gradients", "parameters"},
           "of what each replica keeps only a slice: the state of the optimizer; also the gradients; "
           "also the parameters (ZeRO 1, 2, 3)",
           "\"parameters\""),
       .of = &StrategyKind::sharding,
       .member = &Strategy::sharding,
       .has = [](const Run& run) { return !run.strategy.sharding.empty(); }},
      {.parameter = integer_row(
           "micro_batches", from_one, Bound{65536},
           "parts of a replica's batch; different stages work on different parts at the same time"),
       .of = &StrategyKind::micro_batches,
       .member = &Strategy::micro_batches,
       .has = has_stages,
       .unused = unused_in_one_stage},
      {.parameter =
           text_row("schedule", {"gpipe", "1f1b"},
                    "gpipe: all forward, then all backward; 1f1b: one forward, one backward", "\"1f1b\""),
       .of = &StrategyKind::micro_batches,
       .member = &Strategy::schedule,
       .has = [](const Run& run) { return has_stages(run) && !run.strategy.schedule.empty(); },
       .unused = unused_in_one_stage},
      {.parameter = layers_row("stage_split", from_one, 1023,
                               "the first layer of each stage except the first, counted from 0; \"auto\" "
                               "balances the estimated cost of the layers"),
       .of = &StrategyKind::stages,
       .other_form = "\"auto\""},
      {.parameter = integer_row("tensor", from_one, Bound{1024},
                                "parts into which single layers are split; one rank per part"),
       .of = &StrategyKind::tensor,
       .member = &Strategy::tensor,
       .has = has_parts},
      {.parameter = layers_row(
           "tensor_split", from_zero, 1024,
           "the layers that are split, counted from 0; { width = 2 } names their dimension and the parts; "
           "\"auto\" takes those with the least estimated cost"),
       .of = &StrategyKind::tensor,
       .other_form = "\"auto\", or a table as { width = 2 }",
       .unused = unused_by_one_part},
  };
  for (Key& key : rows)
    if (is_mesh_number(key)) key.parameter.fallback_text = default_of_kinds(key.of);
  return rows;
}

}  // namespace trainyard::experiments
