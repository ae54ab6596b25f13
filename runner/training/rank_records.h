// What a rank writes: its records, which are evidence, and its progress, which is for people watching.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "experiments/protocol/end_reason.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "runner/data/task.h"
#include "runner/device/device_use.h"
#include "runner/device/step_times.h"
#include "runner/optimizer/loss_scale.h"
#include "runner/parity/parity_check.h"
#include "runner/trainer/mesh.h"

namespace trainyard::runner {

// The sums of an epoch so far as people see them while it is trained. On a CPU they are there at once. A GPU
// computes them some steps later than the host asks, and no step waits for that: they are copied behind the
// work that was given to it, and shown when they have arrived. So what is seen of a GPU is a little older.

struct MetricSnapshots {
  double loss = 0;
  std::optional<std::int64_t> correct;  // nothing where accuracy is not defined
  std::int64_t weight = 0;
};

// At once; on a GPU the host waits for it.
MetricSnapshots seen(const MetricSums& sums);

class AsyncMetrics {
 public:
  // `make` marks the work of `device`; not called on a CPU.
  AsyncMetrics(at::Device device, MakeMark make);

  void begin();  // of other sums: forgets those of before
  // The last that have arrived since `begin`; nothing before the first have. Has those of now follow, unless
  // some are under way.
  std::optional<MetricSnapshots> poll(const MetricSums& sums);

 private:
  void send(const MetricSums& sums);

  at::Device device_;
  MakeMark make_;
  at::Tensor arriving_;             // float64 [2] on the host: loss, correct
  std::int64_t weight_ = 0;         // of those
  std::unique_ptr<TimeMark> mark_;  // behind their copy; null: none are under way
  bool forgotten_ = false;          // those under way are of sums before `begin`
  std::optional<MetricSnapshots> arrived_;
};

using ParameterHashes = std::map<std::string, std::string>;  // by name

struct SampleCounts {  // of the whole data set, over all replicas
  std::int64_t train = 0;
  std::int64_t validation = 0;
  std::int64_t test = 0;
};

// How a rank uses its GPU: the same in all arms, and part of what explains its times.
struct GpuSettings {
  std::string model;             // "NVIDIA H200": on a cluster only the rank knows it
  bool channels_last = false;    // images, as their network takes them
  std::string why_not_replayed;  // steps as CUDA graphs; empty: they are
};

struct EpochOutcome {
  std::int64_t epoch = 0;  // from 1
  double train_seconds = 0;
  double processor_seconds = 0;  // of all threads, in train_seconds
  double validation_seconds = 0;
  StepTimes times;  // of train_seconds
  std::optional<ScaledSteps> scaled;
  DeviceUse device_use;
  MetricSums train;
  MetricSums validation;
  std::string batches = {};  // Sampler::batches_hash; empty: another rank states it
};

class RankRecords {
 public:
  RankRecords(const experiments::Launch& launch, int rank);

  // `transport`: how its gradients travel, Communicator::transport.
  void start(const experiments::Launch& launch, const Mesh& mesh, const char* transport,
             std::int64_t parameters, const SampleCounts& samples, int threads,
             const ParameterHashes& initial_weights, const std::optional<GpuSettings>& gpu = {});
  void probe(const ProbedStep& outcome);
  void epoch(const EpochOutcome& outcome);              // and makes all records so far durable
  void checkpoint(std::int64_t epoch, double seconds);  // is whole; it took so long
  void test(double seconds, const MetricSums& sums);
  void message(const std::string& level, const std::string& text);  // level: "info", "warning", "error"
  // On a GPU: steps are replayed, or `why_not`. Where that is not what was said before, a warning.
  void replayed_steps(const std::string& why_not);
  void finished();
  void failed(const std::string& error, experiments::EndReason reason);

  // Overwrites the progress at most 5 times a second, where it is due, and always where `now` says so.
  bool progress_due() const { return progress_.due(); }
  void progress(experiments::Phase phase, std::int64_t epoch, std::int64_t step, std::int64_t steps,
                const std::optional<MetricSnapshots>& sums, bool now = false);

 private:
  nlohmann::ordered_json metrics_of(const MetricSums& sums, const std::string& phase) const;
  void end(experiments::EndReason reason, const std::string& error);
  double seconds_since_start() const;

  int rank_;
  std::int64_t epochs_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double setup_seconds_ = 0;  // until `start`
  bool has_metrics_ = true;   // only the last stage computes any
  bool has_neighbours_ = false;
  std::optional<std::string> why_not_replayed_;  // nothing: this is no GPU
  experiments::RecordWriter writer_;
  experiments::ProgressWriter progress_;
};

}  // namespace trainyard::runner
