#include "runner/training/rank_records.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/ATen.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const TimeParts& parts) {
  return {
      {"data", parts.data},         {"forward", parts.forward},
      {"backward", parts.backward}, {"exposed_communication", parts.exposed_communication + parts.transfer},
      {"bubble", parts.bubble},     {"optimizer", parts.optimizer}};
}

Json to_json(const TimeParts& parts, double whole) {
  Json json = to_json(parts);
  json["other"] = whole - parts.sum();
  return json;
}

// Without events that are too short to see.
Json to_json(const std::vector<StepEvent>& events) {
  constexpr double shortest = 1e-6;
  Json json = Json::array();
  for (const StepEvent& event : events) {
    if (event.end - event.begin < shortest) continue;
    json.push_back({{"part", std::ranges::find(all_time_parts, event.part, &TimePart::seconds)->name}});
    if (event.micro_batch >= 0) json.back()["micro_batch"] = event.micro_batch;
    json.back()["begin"] = event.begin;
    json.back()["end"] = event.end;
  }
  return json;
}

Json to_json(const GpuSettings& gpu) {
  Json json{{"model", gpu.model},
            {"channels_last", gpu.channels_last},
            {"cudnn_autotuning", true},
            {"replayed_steps", gpu.why_not_replayed.empty()}};
  if (!gpu.why_not_replayed.empty()) json["why_not_replayed"] = gpu.why_not_replayed;
  return json;
}

std::string device_name(const experiments::Launch& launch, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (index < launch.devices.size()) return launch.devices[index];
  const std::string cores = cpu_list_text(affinity());
  return cores.empty() ? "cpu" : "cpu:" + cores;
}

// Adds means over an epoch, for the log.
void add_means(log::Fields& fields, const MetricSums& sums, const std::string& phase) {
  if (sums.weight() == 0) return;
  const auto weight = static_cast<double>(sums.weight());
  fields.emplace_back(phase + "_loss", sums.loss() / sums.loss_weight());
  if (const auto correct = sums.correct())
    fields.emplace_back(phase + "_accuracy", static_cast<double>(*correct) / weight);
  for (const MetricSums::Named& named : sums.further())
    if (named.weight > 0)
      fields.emplace_back(phase + "_" + named.name,
                          static_cast<double>(named.sum) / static_cast<double>(named.weight));
}

}  // namespace

RankRecords::RankRecords(const experiments::Launch& launch, int rank)
    : rank_(rank),
      epochs_(launch.run.epochs),
      writer_(launch.records / experiments::rank_records_name(rank), launch.key, launch.attempt, rank),
      progress_(launch.records / experiments::rank_progress_name(rank)) {}

void RankRecords::start(const experiments::Launch& launch, const Mesh& mesh, const char* transport,
                        std::int64_t parameters, const models::PartSizes& samples, int threads,
                        const ParameterHashes& initial_weights, const std::optional<GpuSettings>& gpu) {
  setup_seconds_ = seconds_since_start();
  const Versions built = versions();
  const Hardware here = hardware();
  const Position position = mesh.position(rank_);
  has_metrics_ = position.stage == mesh.stages - 1 && position.part == 0;
  has_neighbours_ = mesh.stages > 1;
  Json body = {
      {"versions", {{"trainyard", built.trainyard}, {"libtorch", built.libtorch}}},
      {"device", device_name(launch, rank_)},
      {"host", host_name()},
      {"hardware", {{"cores", here.cores}, {"memory_bytes", here.memory_bytes}, {"system", here.system}}},
      {"threads", threads},
      {"pid", getpid()},
      {"world_size", launch.run.strategy.world_size()},
      {"transport", transport},
      {"parameters", parameters},
      {"samples", {{"train", samples.train}, {"validation", samples.validation}, {"test", samples.test}}},
      {"initial_weights", initial_weights}};
  if (position.is_server())
    body["server"] = position.stage - mesh.stages;
  else
    body.update({{"replica", position.replica}, {"stage", position.stage}});
  if (mesh.tensor > 1) body["part"] = position.part;
  if (gpu) {
    body["gpu"] = to_json(*gpu);
    why_not_replayed_ = gpu->why_not_replayed;
  }
  writer_.append("start", body);
}

void RankRecords::probe(const ProbedStep& outcome) {
  Json layers = Json::array();
  for (const ProbedLayer& layer : outcome.layers) {
    layers.push_back({{"path", layer.path}, {"gradient_norm", layer.gradient_norm}});
    if (layer.difference) layers.back()["difference"] = *layer.difference;
    layers.back()["parameter_hash"] = layer.parameter_hash;
  }
  Json body{{"step", outcome.step}, {"loss", outcome.loss}};
  if (outcome.reference_loss) body["reference_loss"] = *outcome.reference_loss;
  body["gradient_norm"] = outcome.gradient_norm;
  body["layers"] = std::move(layers);
  writer_.append("probe", body);
  progress(experiments::Phase::probe, 0, outcome.step, probed_steps, {}, true);
}

void RankRecords::epoch(const EpochOutcome& outcome) {
  Json metrics = metrics_of(outcome.train, "train");
  for (const Json& metric : metrics_of(outcome.validation, "validation")) metrics.push_back(metric);
  const StepTimes& times = outcome.times;
  Json body{{"epoch", outcome.epoch},
            {"train_seconds", outcome.train_seconds},
            {"processor_seconds", outcome.processor_seconds},
            {"validation_seconds", outcome.validation_seconds},
            {"seconds", to_json(times.passed, outcome.train_seconds)},
            {"steps", times.steps},
            {"learning_rates", outcome.learning_rates}};
  if (has_neighbours_) body["transfer_seconds"] = times.passed.transfer;
  if (times.straggler) body["straggler_seconds"] = *times.straggler;
  if (times.on_core) {
    body["core_seconds"] = to_json(*times.on_core);
    if (has_neighbours_) body["core_seconds"]["transfer"] = times.on_core->transfer;
  }
  if (const DeviceUse& use = outcome.device_use; use.energy_joules) {
    body["energy_joules"] = *use.energy_joules;
    body["energy_device"] = use.energy_device;
  }
  if (outcome.device_use.peak_bytes) body["peak_device_bytes"] = *outcome.device_use.peak_bytes;
  if (outcome.scaled) {
    body["loss_scale"] = outcome.scaled->loss_scale;
    body["skipped_steps"] = outcome.scaled->skipped_steps;
  }
  if (!outcome.batches.empty()) body["batches"] = outcome.batches;
  if (!outcome.weights.empty()) body["weights"] = outcome.weights;
  if (outcome.held)
    body["held_bytes"] = {{"parameters", outcome.held->parameters},
                          {"gradients", outcome.held->gradients},
                          {"state", outcome.held->state},
                          {"messages", outcome.held->messages}};
  for (const auto& [stale, updates] : outcome.staleness) body["staleness"][std::to_string(stale)] = updates;
  if (!outcome.sent_bytes.empty()) body["sent_bytes"] = outcome.sent_bytes;
  body["metrics"] = std::move(metrics);
  if (times.recorded)
    writer_.append("step", {{"epoch", outcome.epoch},
                            {"step", times.recorded->step},
                            {"events", to_json(times.recorded->events)}});
  writer_.append("epoch", body);
  writer_.sync();
  log::Fields fields{{"epoch", outcome.epoch},
                     {"of", epochs_},
                     {"train_seconds", outcome.train_seconds},
                     {"validation_seconds", outcome.validation_seconds}};
  if (has_metrics_) add_means(fields, outcome.train, "train");
  if (has_metrics_) add_means(fields, outcome.validation, "validation");
  log::info("epoch", fields);
}

void RankRecords::checkpoint(std::int64_t epoch, double seconds) {
  writer_.append("checkpoint", {{"epoch", epoch}, {"seconds", seconds}});
  log::debug("checkpoint", {{"epoch", epoch}, {"seconds", seconds}});
}

void RankRecords::test(double seconds, const MetricSums& sums) {
  writer_.append("test", {{"seconds", seconds}, {"metrics", metrics_of(sums, "test")}});
  log::Fields fields{{"seconds", seconds}};
  if (has_metrics_) add_means(fields, sums, "test");
  log::info("test", fields);
}

Json RankRecords::metrics_of(const MetricSums& sums, const std::string& phase) const {
  return has_metrics_ ? runner::to_json(sums, phase) : Json::array();
}

void RankRecords::message(const std::string& level, const std::string& text) {
  writer_.append("message", {{"level", level}, {"text", text}});
  log::write(log::level_named(level).value_or(log::Level::info), "message", {{"text", text}});
}

void RankRecords::replayed_steps(const std::string& why_not) {
  if (!why_not_replayed_ || *why_not_replayed_ == why_not) return;
  why_not_replayed_ = why_not;
  message("warning", "steps are no longer replayed as CUDA graphs: " + why_not);
}

void RankRecords::finished() {
  end(experiments::EndReason::finished, "");
  log::info("finished", {{"setup_seconds", setup_seconds_}, {"total_seconds", seconds_since_start()}});
  progress(experiments::Phase::done, epochs_, 0, 0, {}, true);
}

void RankRecords::end(experiments::EndReason reason, const std::string& error) {
  Json body{{"status", experiments::status_of(reason)},
            {"setup_seconds", setup_seconds_},
            {"total_seconds", seconds_since_start()}};
  if (!error.empty()) body["error"] = error;
  if (reason != experiments::EndReason::finished) body["reason"] = experiments::to_text(reason);
  writer_.append("end", body);
  writer_.sync();
}

double RankRecords::seconds_since_start() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RankRecords::progress(experiments::Phase phase, std::int64_t epoch, std::int64_t step,
                           std::int64_t steps, const std::optional<MetricSnapshots>& sums, bool now) {
  if (!now && !progress_.due()) return;
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const bool known = sums && sums->weight > 0;
  const auto weight = known ? static_cast<double>(sums->weight) : unknown;
  experiments::Progress progress;
  progress.phase = phase;
  progress.epoch = static_cast<std::uint32_t>(epoch);
  progress.epochs = static_cast<std::uint32_t>(epochs_);
  progress.step = static_cast<std::uint64_t>(step);
  progress.steps = static_cast<std::uint64_t>(steps);
  progress.loss = known ? sums->loss / weight : unknown;
  const bool counted = known && sums->correct;
  progress.accuracy = counted ? static_cast<double>(*sums->correct) / weight : unknown;
  progress_.write(progress);
}

MetricSnapshots seen(const MetricSums& sums) {
  const auto weight = static_cast<double>(sums.weight());
  return {sums.loss() * (weight / sums.loss_weight()), sums.correct(), sums.weight()};
}

void AsyncMetrics::begin() {
  arrived_.reset();
  forgotten_ = mark_ != nullptr;
}

std::optional<MetricSnapshots> AsyncMetrics::poll(const MetricSums& sums) {
  if (device_.is_cpu() && !make_) return seen(sums);
  if (mark_ && mark_->passed()) {
    const auto* numbers = arriving_.const_data_ptr<double>();
    const auto correct = static_cast<std::int64_t>(numbers[1]);
    if (!std::exchange(forgotten_, false))
      arrived_ = {numbers[0], sums.counts_correct() ? std::optional(correct) : std::nullopt, weight_};
    mark_.reset();
  }
  if (!mark_) send(sums);
  return arrived_;
}

void AsyncMetrics::send(const MetricSums& sums) {
  if (!arriving_.defined())  // in pinned memory, which a GPU writes asynchronously
    arriving_ = at::empty({2}, at::TensorOptions(at::kDouble).pinned_memory(device_.is_cuda()));
  arriving_.copy_(sums.numbers(), /*non_blocking=*/true);
  weight_ = sums.weight();
  mark_ = make_();
}

}  // namespace trainyard::runner
