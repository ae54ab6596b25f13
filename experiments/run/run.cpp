#include "experiments/run/run.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trainyard::experiments {

double effective_learning_rate(const Run& run) {
  const double growth = static_cast<double>(run.global_batch) / static_cast<double>(run.batch_size);
  if (run.learning_rate_scaling == "linear") return run.optimizer.learning_rate * growth;
  if (run.learning_rate_scaling == "sqrt") return run.optimizer.learning_rate * std::sqrt(growth);
  return run.optimizer.learning_rate;
}

Value batch_value(std::int64_t size, const std::string& per) {
  if (per == "global") return size;
  return std::to_string(size) + " per " + per;
}

namespace {

// How the data is prepared, where it is prepared so.
void add_prepared(const models::DataChoice& data, std::map<std::string, Value>& values) {
  const auto rows = models::datasets();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const models::Dataset& each) { return each.name == data.dataset; });
  if (row == rows.end()) return;
  if (row->kind != models::DataKind::images) {
    values["vocabulary_min_frequency"] = data.vocabulary_min_frequency;
    values["vocabulary_max_size"] = data.vocabulary_max_size;
  }
  if (data.dataset == "folder") values["image_size"] = data.image_size;
}

}  // namespace

std::map<std::string, Value> values_by_name(const Run& run) {
  std::map<std::string, Value> values = run.hyperparameters;
  values["model"] = run.model;
  values["dataset"] = run.data.dataset;
  values["data_split"] = std::vector<double>(run.data.split.begin(), run.data.split.end());
  if (run.data.train_samples) values["train_samples"] = *run.data.train_samples;
  add_prepared(run.data, values);
  values["strategy"] = run.strategy.name;
  values["replicas"] = run.strategy.replicas;
  values["stages"] = run.strategy.stages;
  if (run.strategy.stages > 1) {
    values["micro_batches"] = run.strategy.micro_batches;
    if (!run.strategy.schedule.empty()) values["schedule"] = run.strategy.schedule;
    if (run.strategy.split == "auto")
      values["stage_split"] = run.strategy.split;
    else
      values["stage_split"] = run.strategy.boundaries;
    if (!run.strategy.boundaries.empty()) values["boundaries"] = run.strategy.boundaries;
  }
  values["optimizer"] = run.optimizer.kind;
  values["learning_rate"] = run.optimizer.learning_rate;
  if (run.optimizer.kind == "sgd") values["momentum"] = run.optimizer.momentum;
  values["weight_decay"] = run.optimizer.weight_decay;
  values["learning_rate_schedule"] = run.optimizer.schedule;
  if (run.optimizer.schedule == "step") {
    values["learning_rate_step_epochs"] = run.optimizer.schedule_epochs;
    values["learning_rate_factor"] = run.optimizer.schedule_factor;
  }
  values["learning_rate_scaling"] = run.learning_rate_scaling;
  values["clip_norm"] = run.optimizer.clip_norm;
  values["epochs"] = run.epochs;
  values["batch"] =
      run.batch_per == "global" ? Value(run.global_batch) : batch_value(run.batch_size, run.batch_per);
  values["global_batch"] = run.global_batch;
  values["gradient_accumulation"] = run.gradient_accumulation;
  values["sampler"] = run.sampler;
  values["augmentation"] = run.augmentation;
  values["batch_norm"] = run.batch_norm;
  values["precision"] = run.precision;
  values["seed"] = static_cast<std::int64_t>(run.seed);
  if (run.threads) values["threads"] = *run.threads;
  return values;
}

bool is_run_value(std::string_view name) {
  static constexpr std::array names{"augmentation",
                                    "batch",
                                    "batch_norm",
                                    "boundaries",
                                    "clip_norm",
                                    "data_split",
                                    "dataset",
                                    "epochs",
                                    "global_batch",
                                    "gradient_accumulation",
                                    "image_size",
                                    "learning_rate",
                                    "learning_rate_factor",
                                    "learning_rate_scaling",
                                    "learning_rate_schedule",
                                    "learning_rate_step_epochs",
                                    "micro_batches",
                                    "model",
                                    "momentum",
                                    "optimizer",
                                    "precision",
                                    "replicas",
                                    "sampler",
                                    "schedule",
                                    "seed",
                                    "stage_split",
                                    "stages",
                                    "strategy",
                                    "threads",
                                    "train_samples",
                                    "vocabulary_max_size",
                                    "vocabulary_min_frequency",
                                    "weight_decay"};
  return std::ranges::find(names, name) != names.end();
}

std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : trainyard::to_text(value);
}

std::string label(const Run& run) {
  std::string text = run.model + ' ' + run.strategy.name + " seed " + std::to_string(run.seed);
  for (const auto& [name, value] : run.axes) {
    if (name == "model" || name == "strategy" || name == "seed") continue;
    text += ' ' + name + '=' + plain_text(value);
  }
  return text;
}

}  // namespace trainyard::experiments
