// The metrics of all tasks, one row each, and what a training costs. Columns of the database, expectations,
// verdicts, figures and tables follow from these tables. To add a metric: its count in a row of
// runner/data/task.cpp and a row here. No LibTorch.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/metric_kinds.h"
#include "models/tasks.h"

namespace trainyard::models {

inline constexpr std::array<std::string_view, 3> phases{"train", "validation", "test"};

struct Metric {
  std::string_view name{};   // "accuracy": its columns are train_accuracy, validation_accuracy, test_accuracy
  std::string_view title{};  // "accuracy", behind "Training", "Validation" or "Test"
  const MetricKind* kind = &metric_kinds::loss;
  int digits = 2;                           // that `show` prints
  std::array<std::string_view, 5> tasks{};  // of the models that have it; none: all models have it
  // Source of its value, one of the three:
  std::string_view record{};   // records of this name: Σ sum / Σ weight over ranks
  std::string_view of_loss{};  // SQL of the mean loss `@`
  // SQL over the rows (name, sum, weight) of these records of the test, each summed over ranks.
  std::string_view of_sums{};
  std::array<std::string_view, 5> sums{};
  std::size_t part = 0;    // of a network's own loss, from 1: it is defined if the loss has so many
  bool published = false;  // its validation enters the published table

  constexpr std::span<const std::string_view> phases() const {
    const std::span<const std::string_view> all(models::phases);
    return of_sums.empty() ? all : all.last(1);
  }
  constexpr bool is_of(std::string_view task) const {
    return is_of_all() || (!task.empty() && std::ranges::find(tasks, task) != tasks.end());
  }
  constexpr bool is_of_all() const { return tasks.front().empty(); }
};

// A named part of a network's own loss.
constexpr Metric loss_part(std::string_view name, std::string_view title, std::size_t number) {
  return {
      .name = name, .title = title, .digits = 5, .tasks = {own_loss_task}, .record = name, .part = number};
}

inline constexpr std::array all_metrics{
    Metric{.name = "loss", .title = "loss", .digits = 5, .record = "loss", .published = true},
    Metric{.name = "accuracy",
           .title = "accuracy",
           .kind = &metric_kinds::accuracy,
           .tasks = {"classification", "translation", "language-model"},
           .record = "correct",
           .published = true},
    // The loss is nats per token. A perplexity beyond what a double holds is NULL.
    Metric{.name = "perplexity",
           .title = "perplexity",
           .kind = &metric_kinds::perplexity,
           .digits = 3,
           .tasks = {"translation", "language-model"},
           .of_loss = "CASE WHEN @ < 709 THEN exp(@) END"},
    // BLEU of the corpus (Papineni et al. 2002): 100 exp(min(0, 1 - r/c) + mean of ln p_n for n = 1 … 4).
    // - p_n: matched / candidate n-grams. If one of them is 0, BLEU is 0.
    // - c: length of the candidates. r: length of the references.
    Metric{.name = "bleu",
           .title = "BLEU",
           .kind = &metric_kinds::bleu,
           .tasks = {"translation"},
           .of_sums = "CASE WHEN COUNT(sum) < 5 THEN NULL WHEN MIN(sum) <= 0 THEN 0.0 "
                      "ELSE 100 * exp(SUM(IIF(name = 'bleu_length', MIN(0, 1 - weight / sum), "
                      "ln(sum / weight) / 4))) END",
           .sums = {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "bleu_length"}},
    // The loss is the mean squared error of a pixel with peak 1. The PSNR of an error of 0 is NULL.
    Metric{.name = "psnr",
           .title = "PSNR",
           .kind = &metric_kinds::psnr,
           .tasks = {"reconstruction"},
           .of_loss = "-10 * log10(@)"},
    // The part of the targets' variance that the network explains: 1 - mean squared error / variance.
    Metric{.name = "r2",
           .title = "R²",
           .kind = &metric_kinds::r2,
           .tasks = {"regression"},
           .of_sums = "1 - SUM(IIF(name = 'loss', sum, 0)) / NULLIF(SUM(IIF(name = 'square', sum, 0)) - "
                      "POW(SUM(IIF(name = 'target', sum, 0)), 2) / MAX(weight), 0)",
           .sums = {"loss", "target", "square"}},
    // The root of the mean squared error, in the unit of the targets.
    Metric{.name = "rmse",
           .title = "RMSE",
           .digits = 4,
           .tasks = {"regression"},
           .of_sums = "SQRT(SUM(IIF(name = 'loss', sum / weight, 0))) * "
                      "NULLIF(SUM(IIF(name = 'deviation', sum / weight, 0)), 0)",
           .sums = {"loss", "deviation"}},
    loss_part("part1", "loss part 1", 1), loss_part("part2", "loss part 2", 2),
    loss_part("part3", "loss part 3", 3)};

// What a training costs: measured by the runner, whatever the task.
struct Cost {
  std::string_view name{};      // "train-seconds": in file names and anchors
  std::string_view title{};     // "Training time per epoch"
  std::string_view quantity{};  // "time": with its unit the name of a row or column
  const MetricKind* kind = &metric_kinds::time;
  std::string_view final_column{};  // of a run
  // The column of an epoch. A total has none. It is judged if arms train different numbers of epochs.
  std::string_view epoch_column{};
  bool published = false;
  bool rarely_measured = false;  // shown only if a run has a number
};

inline constexpr std::array all_costs{Cost{.name = "train-seconds",
                                           .title = "Training time per epoch",
                                           .quantity = "time",
                                           .final_column = "epoch_train_seconds",
                                           .epoch_column = "train_seconds",
                                           .published = true},
                                      // The sum over all epochs, warm-up included, of the slowest rank of
                                      // each. A disturbed epoch counts as the mean of the others. Set-up,
                                      // validation and checkpoints are not in it.
                                      Cost{.name = "train-total-seconds",
                                           .title = "Total training time",
                                           .quantity = "total time",
                                           .final_column = "total_train_seconds",
                                           .rarely_measured = true},
                                      // Processor time of the rank that used most. Waiting is not in it.
                                      Cost{.name = "train-processor-seconds",
                                           .title = "Processor time per epoch, busiest rank",
                                           .quantity = "processor time",
                                           .kind = &metric_kinds::processor_time,
                                           .final_column = "epoch_processor_seconds",
                                           .epoch_column = "processor_seconds",
                                           .rarely_measured = true},
                                      Cost{.name = "validation-seconds",
                                           .title = "Total validation time",
                                           .quantity = "time",
                                           .final_column = "total_validation_seconds",
                                           .epoch_column = "validation_seconds"},
                                      Cost{.name = "train-energy",
                                           .title = "Training energy per epoch",
                                           .quantity = "energy",
                                           .kind = &metric_kinds::energy,
                                           .final_column = "epoch_energy_joules",
                                           .epoch_column = "energy_joules",
                                           .rarely_measured = true}};

// The names of what a rank of a run with this task records: "loss", "correct".
std::vector<std::string> records_of(std::string_view task);

}  // namespace trainyard::models
