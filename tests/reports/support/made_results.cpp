#include "tests/reports/support/made_results.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "reports/analysis/analysis.h"

namespace trainyard::reports {

namespace {

// Noise in [−1, 1) from a hash of the arguments, so that no number depends on the order of calls.
double noise(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL ^ b * 0xBF58476D1CE4E5B9ULL ^ c * 0x94D049BB133111EBULL;
  x ^= x >> 31U;
  x *= 0xD6E8FEB86659FD93ULL;
  x ^= x >> 32U;
  return static_cast<double>(x >> 11U) / 4503599627370496.0 - 1;
}

std::string key_of(const std::string& model, const std::string& strategy, int seed) {
  std::string key = model.substr(0, 3) + strategy.substr(0, 3) + std::to_string(seed);
  std::ranges::replace_if(
      key, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, 'x');
  return key + std::string(12 - std::min<std::size_t>(12, key.size()), '0');
}

double speed_of(const db::RunSummary& run) {
  if (run.stages > 1) return 0.8;
  return run.replicas > 1 ? 0.55 : 1.0;
}

// Adds the metrics of single tasks, computed from the losses like in the database's views.
template <typename Row>
void add_task_metrics(Row& row) {
  if (row.model == "conv-autoencoder") {
    row["train_accuracy"] = row["validation_accuracy"] = std::nan("");
    row["train_loss"] *= 0.01;
    row["validation_loss"] *= 0.01;
    row["train_psnr"] = -10 * std::log10(row["train_loss"]);
    row["validation_psnr"] = -10 * std::log10(row["validation_loss"]);
  }
  if (row.model == "seq2seq") {
    row["train_loss"] += 2;
    row["validation_loss"] += 2;
    row["train_perplexity"] = std::exp(row["train_loss"]);
    row["validation_perplexity"] = std::exp(row["validation_loss"]);
  }
}

db::EpochRow epoch_row(const db::RunSummary& run, std::int64_t rank, int epoch, std::uint64_t which) {
  const auto seed = static_cast<std::uint64_t>(run.seed);
  const auto at = [&](std::uint64_t what) {
    return noise(seed * 100 + static_cast<std::uint64_t>(epoch),
                 which * 10 + static_cast<std::uint64_t>(rank + 1), what);
  };
  const double progress = 1 - std::exp(-0.55 * epoch);
  const double speed = speed_of(run);
  db::EpochRow row;
  row.run_key = run.run_key;
  row.model = run.model;
  row.strategy = run.strategy;
  row.seed = run.seed;
  row.replica = rank;
  row.epoch = epoch;
  row["train_loss"] = 2.3 * std::exp(-0.5 * epoch) + 0.25 + 0.004 * at(1);
  row["train_accuracy"] = 0.1 + 0.87 * progress + 0.002 * at(2);
  row["validation_loss"] = 2.3 * std::exp(-0.45 * epoch) + 0.3 + 0.006 * at(3);
  row["validation_accuracy"] = 0.1 + 0.85 * progress + 0.002 * at(4);
  row["train_seconds"] = (2.0 + (epoch == 1 ? 0.4 : 0) + 0.02 * at(5)) * speed;
  row["validation_seconds"] = (0.25 + 0.004 * at(6)) * speed;
  add_task_metrics(row);
  return row;
}

double joules_of(const db::RunSummary& run, int epoch) {
  const auto seed = static_cast<std::uint64_t>(run.seed);
  const double devices = run.replicas * run.stages > 1 ? 1.1 : 1;
  return 500 * devices * (epoch == 1 ? 1.2 : 1) + noise(seed, static_cast<std::uint64_t>(epoch), 17);
}

void add_epochs(ReportData& data, const db::RunSummary& run, int epochs, std::uint64_t which, bool energy) {
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    data.averages.push_back(epoch_row(run, -1, epoch, which));
    if (energy) data.averages.back()["energy_joules"] = joules_of(run, epoch);
    for (std::int64_t rank = 0; rank < run.replicas; ++rank)
      data.replicas.push_back(epoch_row(run, rank, epoch, which));
  }
}

void add_final(ReportData& data, const db::RunSummary& run, int epochs) {
  const db::EpochRow last = data.averages.back();
  db::FinalMetrics final;
  final.run_key = run.run_key;
  final.model = run.model;
  final.strategy = run.strategy;
  final.seed = run.seed;
  final["train_loss"] = last["train_loss"];
  final["train_accuracy"] = last["train_accuracy"];
  final["validation_loss"] = last["validation_loss"];
  final["validation_accuracy"] = last["validation_accuracy"];
  final["test_loss"] = last["validation_loss"] + 0.01;
  final["test_accuracy"] = last["validation_accuracy"] - 0.003;
  final["train_perplexity"] = last["train_perplexity"];
  final["validation_perplexity"] = last["validation_perplexity"];
  final["train_psnr"] = last["train_psnr"];
  final["validation_psnr"] = last["validation_psnr"];
  if (run.model == "conv-autoencoder") final["test_psnr"] = last["validation_psnr"] - 0.02;
  if (run.model == "seq2seq") {
    final["test_perplexity"] = std::exp(final["test_loss"]);
    final["test_bleu"] = 30 + 0.2 * static_cast<double>(run.seed);
  }
  final["epoch_train_seconds"] = last["train_seconds"];
  final["total_train_seconds"] = last["train_seconds"] * epochs;
  final["total_validation_seconds"] = last["validation_seconds"] * epochs;
  final["epoch_energy_joules"] = last["energy_joules"];
  final.epochs = epochs;
  final.other_share = 0.004;
  data.finals.push_back(std::move(final));
}

void add_time_parts(ReportData& data, const db::RunSummary& run) {
  const double half = run.replicas * run.stages > 1 ? 0.5 : 1.0;
  data.times.push_back({run.run_key,
                        {{"forward", 0.6 * half},
                         {"backward", 1.1 * half},
                         {"optimizer", 0.1},
                         {"exposed_communication", run.replicas > 1 ? 0.12 : 0.0},
                         {"bubble", run.stages > 1 ? 0.45 : 0.0},
                         {"data", 0.15 * half},
                         {"other", 0.05}}});
}

void add_run(ReportData& data, const InventedOptions& options, const std::string& model,
             const std::string& strategy, int seed) {
  db::RunSummary run;
  run.run_key = key_of(model, strategy, seed);
  run.experiment = data.experiment;
  run.model = model;
  run.dataset = "mnist";
  run.data_source = "synthetic-digits";
  run.strategy = strategy;
  run.replicas = strategy == "single" || strategy == "pipeline" ? 1 : 2;
  run.stages = strategy == "mp-ddp" || strategy == "pipeline" ? 2 : 1;
  run.seed = seed;
  run.status = "finished";
  run.epochs = run.epochs_done = options.epochs;
  run.attempts = 1;
  run.total_train_seconds = 2.0 * options.epochs;
  run.total_seconds = 2.5 * options.epochs;
  run.updated = "2026-11-20T09:30:12.345Z";
  run.axes = {
      {"model", model}, {"strategy", strategy}, {"seed", std::int64_t{seed}}, {"batch", std::int64_t{128}}};
  if (run.stages > 1) {
    run.axes["schedule"] = std::string("1f1b");
    run.axes["micro_batches"] = std::int64_t{4};
  }
  data.plan.keys.push_back(run.run_key);
  data.launched[run.run_key] = {
      {"lab-node-03", "Xeon", 1, 1, "0.1.0 Release", "2.13.0", ""},
      std::vector<std::size_t>(static_cast<std::size_t>(run.replicas * run.stages), 1)};
  const std::uint64_t which = (model.empty() ? 0U : static_cast<unsigned char>(model[0])) * 7U +
                              strategy.size() + (strategy == "mp-ddp" ? 3U : 0U);
  add_epochs(data, run, options.epochs, which, options.energy);
  add_final(data, run, options.epochs);
  add_time_parts(data, run);
  data.runs.push_back(std::move(run));
}

template <typename Row>
Row& find_row(std::vector<Row>& rows, const std::string& model, const std::string& strategy, int seed) {
  for (Row& row : rows) {
    if (row.model == model && row.strategy == strategy && row.seed == seed) return row;
  }
  throw std::out_of_range("no such invented run");
}

}  // namespace

ReportData invented(const InventedOptions& options) {
  ReportData data;
  data.experiment = "first sweep";
  data.plan.experiment = data.experiment;
  data.plan.compare.emplace_back();
  data.plan.varied = {"model", "strategy", "seed"};
  for (const std::string& model : options.models) {
    for (const std::string& strategy : options.strategies) {
      for (int seed = 0; seed < options.seeds; ++seed) add_run(data, options, model, strategy, seed);
    }
  }
  data.history.push_back({"2026-11-20T08:00:00.000Z", "", data.plan.compare, data.plan.keys, {}});
  return data;
}

void plan_again(ReportData& data, const std::vector<std::string>& keys) {
  data.plan.keys = keys;
  data.history.push_back({"2026-11-21T08:00:00.000Z", "", data.plan.compare, keys, {}});
}

std::vector<std::string> keys_of_seeds(const ReportData& data, int first, int last) {
  std::vector<std::string> keys;
  for (const db::RunSummary& run : data.runs)
    if (run.seed >= first && run.seed <= last) keys.push_back(run.run_key);
  return keys;
}

db::FinalMetrics& final_of(ReportData& data, const std::string& model, const std::string& strategy,
                           int seed) {
  return find_row(data.finals, model, strategy, seed);
}

db::RunSummary& run_of(ReportData& data, const std::string& model, const std::string& strategy, int seed) {
  return find_row(data.runs, model, strategy, seed);
}

void set_status(ReportData& data, const std::string& model, const std::string& strategy, int seed,
                const std::string& status) {
  db::RunSummary& run = run_of(data, model, strategy, seed);
  run.status = status;
  std::erase_if(data.finals, [&](const db::FinalMetrics& final) { return final.run_key == run.run_key; });
}

void add_step(ReportData& data, const db::RunSummary& run) {
  const auto add = [&](std::int64_t stage, const char* part, std::int64_t micro_batch, double begin,
                       double end) {
    for (std::int64_t replica = 0; replica < run.replicas; ++replica)
      data.step_events.push_back(
          {run.run_key, 2, 30, replica, stage, "node", part, micro_batch, begin / 1000, end / 1000});
  };
  add(0, "forward", 0, 0, 0.5);
  add(0, "forward", 1, 0.5, 1);
  add(0, "bubble", 0, 1, 1.5);
  add(0, "backward", 0, 1.5, 2);
  add(1, "bubble", 0, 0, 1);
  add(1, "transfer", 0, 1, 1.1);
  add(1, "forward", 0, 1.1, 1.5);
  add(1, "backward", 0, 1.5, 1.9);
  add(1, "optimizer", -1, 1.9, 2);
}

void set_final(ReportData& data, const std::string& model, const std::string& strategy,
               db::MetricColumn metric, const std::function<double(int)>& value) {
  for (db::FinalMetrics& final : data.finals) {
    if (final.model == model && final.strategy == strategy)
      final[metric] = value(static_cast<int>(final.seed));
  }
}

void add_variant(ReportData& data, const std::map<std::string, Value>& values, double mean) {
  const ReportData variant = invented({.models = {"mlp"}, .strategies = {"single"}, .seeds = 3});
  const std::string suffix = std::to_string(data.runs.size());
  for (db::RunSummary run : variant.runs) {
    run.run_key += suffix;
    for (const auto& [name, value] : values) run.axes[name] = value;
    data.plan.keys.push_back(run.run_key);
    data.history.front().keys.push_back(run.run_key);
    data.runs.push_back(run);
  }
  for (db::FinalMetrics final : variant.finals) {
    final.run_key += suffix;
    final["validation_accuracy"] = mean + 0.01 * static_cast<double>(final.seed - 1);
    data.finals.push_back(final);
  }
  for (const auto& [key, launched] : variant.launched) data.launched[key + suffix] = launched;
}

ReportData study_of(const std::vector<std::string>& axes, const std::string& baseline) {
  ReportData data = invented({.models = {}});
  for (const std::string& axis : axes) data.plan.varied.push_back(axis);
  data.plan.compare.front().axis = axes.front();
  data.plan.compare.front().baseline = baseline;
  return data;
}

Content compose(const ReportData& data) {
  return compose(make_report(data));
}

}  // namespace trainyard::reports
