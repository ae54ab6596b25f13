#include "experiments/run/strategies.h"

#include "base/named_row.h"

namespace trainyard::experiments {

std::span<const StrategyKind> strategy_kinds() {
  static const StrategyKind::Range two_or_more{.fallback = 2, .minimum = 2, .maximum = 1024};
  static const StrategyKind::Range micro_batches{.fallback = 4, .minimum = 1, .maximum = 65536};
  static const std::vector<StrategyKind> rows{
      {.name = "single", .about = "one rank takes the whole batch: the baseline"},
      {.name = "ddp",
       .about =
           "data parallel: each replica takes its part of the batch, gradients are summed over all replicas",
       .replicas = two_or_more,
       .elastic = true},
      {.name = "mp",
       .about = "layer-wise model parallel: each stage has consecutive layers, one stage works at a time",
       .stages = two_or_more},
      {.name = "pipeline",
       .about = "like mp, but the batch is split into micro-batches, so that stages work at the same time",
       .stages = two_or_more,
       .micro_batches = micro_batches,
       .schedule = "1f1b"},
      {.name = "mp-ddp",
       .about = "replicas of pipelines: each stage's gradients are summed over its replicas",
       .replicas = two_or_more,
       .stages = two_or_more,
       .micro_batches = micro_batches,
       .schedule = "1f1b"},
      {.name = "tensor",
       .about = "single layers are split over the ranks of a stage, which have the same batch and exchange "
                "sums within a step; with stages and replicas, too",
       .replicas = {.fallback = 1, .minimum = 1, .maximum = 1024},
       .stages = {.fallback = 1, .minimum = 1, .maximum = 1024},
       .micro_batches = micro_batches,
       .tensor = {.fallback = 2, .minimum = 1, .maximum = 1024},
       .schedule = "1f1b"},
      {.name = "parameter-server",
       .about =
           "servers hold the parameters: each replica sends them the gradients of its part of the batch, "
           "and gets the parameters that they update",
       .claim = "same; recorded if async",
       .replicas = {.fallback = 2, .minimum = 1, .maximum = 1024},
       .servers = {.fallback = 1, .minimum = 1, .maximum = 1024}},
      {.name = "zero",
       .about = "like ddp, but each replica keeps only a slice of the state of the optimizer, of the "
                "gradients and of the parameters",
       .replicas = two_or_more,
       .sharding = {.fallback = 3, .minimum = 1, .maximum = 3}},
      {.name = "independent",
       .about = "several unconnected copies of single at once: the limit of the machine, plotted beside the "
                "speed-up",
       .claim = "none",
       .replicas = two_or_more,
       .independent = true},
      {.name = "in-step",
       .about =
           "like independent, but the copies begin each step together: what waiting for one another costs",
       .claim = "none",
       .replicas = two_or_more,
       .independent = true,
       .in_step = true},
  };
  return rows;
}

std::vector<std::string> strategy_names() {
  return names_of(strategy_kinds(), &StrategyKind::name);
}

const StrategyKind* strategy_or_null(std::string_view name) {
  return row_or_null(strategy_kinds(), &StrategyKind::name, name);
}

const StrategyKind& find_strategy(std::string_view name) {
  return named_row(strategy_kinds(), &StrategyKind::name, "strategy", name);
}

bool is_independent(std::string_view name) {
  const StrategyKind* kind = strategy_or_null(name);
  return kind != nullptr && kind->independent;
}

const StrategyKind& foreign_kind() {
  static const StrategyKind kind{
      .name = "foreign",
      .about = "a program of your own: `command` is its command line, `replicas` is its number of processes",
      .replicas = {.fallback = 1, .minimum = 1, .maximum = 1024}};
  return kind;
}

}  // namespace trainyard::experiments
