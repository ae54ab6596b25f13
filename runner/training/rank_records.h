// Output of a rank: its records, which are permanent, and its progress, which is displayed while it runs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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

// Metric sums of the current epoch, for the progress display.
struct MetricSnapshots {
  double loss = 0;
  std::optional<std::int64_t> correct;  // empty if accuracy is not defined
  std::int64_t weight = 0;
};

// A snapshot of `sums`. Synchronises with a GPU.
MetricSnapshots seen(const MetricSums& sums);

// Snapshots without host–device synchronisation. Sums on a GPU are copied asynchronously and are returned
// once they have arrived, so they are a few steps old. Sums on a CPU are current.
class AsyncMetrics {
 public:
  // `make` makes marks in the work of `device`. It is not called on a CPU.
  AsyncMetrics(at::Device device, MakeMark make) : device_(device), make_(std::move(make)) {}

  void begin();  // starts with new sums and drops the previous snapshot
  // The newest snapshot since `begin`. Empty if none has arrived. Starts the next copy unless one is in
  // flight.
  std::optional<MetricSnapshots> poll(const MetricSums& sums);

 private:
  void send(const MetricSums& sums);

  at::Device device_;
  MakeMark make_;
  at::Tensor arriving_;             // float64 [2] on the host: loss, correct
  std::int64_t weight_ = 0;         // weight of `arriving_`
  std::unique_ptr<TimeMark> mark_;  // after the copy; null if no copy is in flight
  bool forgotten_ = false;          // the copy in flight was started before `begin`
  std::optional<MetricSnapshots> arrived_;
};

using ParameterHashes = std::map<std::string, std::string>;  // by name

// Settings of a rank's GPU, for the `start` record. They are equal in all arms and help to explain times.
struct GpuSettings {
  std::string model;             // "NVIDIA H200"; on a cluster only the rank can read it
  bool channels_last = false;    // memory format of images
  std::string why_not_replayed;  // reason why steps are not replayed as CUDA graphs; empty if they are
};

struct EpochOutcome {
  std::int64_t epoch = 0;  // from 1
  double train_seconds = 0;
  double processor_seconds = 0;  // CPU time of all threads during train_seconds
  double validation_seconds = 0;
  StepTimes times;  // breakdown of train_seconds
  std::optional<ScaledSteps> scaled;
  DeviceUse device_use;
  MetricSums train;
  MetricSums validation;
  std::string batches = {};                   // Sampler::batches_hash; empty if another rank records it
  std::array<double, 2> learning_rates = {};  // of its first and its last step
  std::string weights = {};                   // hash of all parameters, of asynchronous servers; else empty
  std::map<std::int64_t, std::int64_t> staleness = {};  // of such a server: runner/optimizer/update.h
  std::map<std::string, std::int64_t> sent_bytes = {};  // in training: Connections::take_sent_bytes
};

class RankRecords {
 public:
  RankRecords(const experiments::Launch& launch, int rank);

  // `transport`: Communicator::transport of the gradients. `samples`: of the whole data set, over all replicas.
  void start(const experiments::Launch& launch, const Mesh& mesh, const char* transport,
             std::int64_t parameters, const models::PartSizes& samples, int threads,
             const ParameterHashes& initial_weights, const std::optional<GpuSettings>& gpu = {});
  void probe(const ProbedStep& outcome);
  void epoch(const EpochOutcome& outcome);              // also makes all records so far durable
  void checkpoint(std::int64_t epoch, double seconds);  // the checkpoint is complete; `seconds` to write it
  void test(double seconds, const MetricSums& sums);
  void message(const std::string& level, const std::string& text);  // level: "info", "warning", "error"
  // Writes a warning if `why_not` differs from the last value. Empty means that steps are replayed. No effect
  // on a CPU.
  void replayed_steps(const std::string& why_not);
  void finished();
  void failed(const std::string& error, experiments::EndReason reason) { end(reason, error); }

  // Overwrites the progress if it is due, at most 5 times per second, or if `now`.
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
  bool has_metrics_ = true;   // only the last stage computes metrics
  bool has_neighbours_ = false;
  std::optional<std::string> why_not_replayed_;  // empty on a CPU
  experiments::RecordWriter writer_;
  experiments::ProgressWriter progress_;
};

}  // namespace trainyard::runner
