#include "runner/training/training.h"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/Parallel.h>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "experiments/protocol/server_log.h"
#include "experiments/run/strategies.h"
#include "runner/data/sampler.h"
#include "runner/device/device.h"
#include "runner/device/device_use.h"
#include "runner/device/gpu.h"
#include "runner/device/precision.h"
#include "runner/optimizer/optimizer.h"
#include "runner/parity/parity_check.h"
#include "runner/parity/replay_check.h"
#include "runner/trainer/resolved_run.h"
#include "runner/trainer/trainer.h"
#include "runner/trainer/translation.h"
#include "runner/trainer/whole_tensors.h"
#include "runner/training/checkpoints.h"

namespace trainyard::runner {

namespace {

using experiments::Phase;

// Pins the rank to its cores and sets the number of LibTorch's threads: the run's `threads`, else one per
// core, or for a GPU the number in the plan.
int configure_threads(const experiments::Launch& launch, int rank, const DeviceAssignment& assignment,
                      RankRecords& records) {
  const auto index = static_cast<std::size_t>(rank);
  if (index < launch.cores.size() && !pin_to(launch.cores[index])) {
    records.message("warning", "could not pin this rank to cores " + cpu_list_text(launch.cores[index]));
  }
  // a launch on a cluster may have no cores
  const bool own_cores = index < launch.cores.size() && assignment.device.is_cpu();
  const int own =
      own_cores ? std::max(1, static_cast<int>(affinity().size())) : launch.circumstances.threads_per_rank;
  const int threads = launch.run.threads ? static_cast<int>(*launch.run.threads) : own;
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
  return threads;
}

// The input shape of the network. A launch file written by hand may omit it, then it is read from the data.
models::InputShape input_of(const models::DataChoice& data) {
  if (data.input != models::InputShape{}) return data.input;
  return models::facts(models::find_dataset(data.source), data.folder, data).input;
}

struct EpochTiming {
  double seconds;                        // from a barrier to this rank's last optimizer step
  double processor_seconds;              // of all threads of the process in this time
  std::array<double, 2> learning_rates;  // of the first and the last step
  std::map<std::string, std::int64_t> sent_bytes;
};

// Passes over this replica's part of the data.
class EpochRunner {
 public:
  EpochRunner(const ResolvedRun& resolved, const Connections& ranks, RankRecords& records)
      : resolved_(resolved),
        run_(resolved.run),
        ranks_(ranks),
        records_(records),
        meter_(ranks.device),
        seen_(ranks.device, ranks.device.is_cuda() ? gpu_marks() : MakeMark()) {}

  EpochTiming train(Trainer& trainer, const Dataset& data, std::int64_t epoch) {
    const Sampler sampler = training_sampler(data);
    records_.progress(Phase::train, epoch, 0, sampler.steps(), {}, true);
    seen_.begin();
    ranks_.barrier();
    ranks_.take_sent_bytes();  // drops those of before
    meter_.training_begins();
    const std::clock_t processor = std::clock();
    Stopwatch watch;
    trainer.train_epoch(data, epoch, sampler, [&](std::int64_t step, const MetricSums& so_far) {
      show(Phase::train, epoch, step, sampler, so_far);
    });
    synchronize(ranks_.device);
    const double seconds = watch.lap();
    const double processor_seconds = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
    meter_.training_ends();
    const auto rate = [&](std::int64_t step) {
      return resolved_.learning_rate_at({epoch, step, sampler.steps()});
    };
    return {seconds, processor_seconds, {rate(0), rate(sampler.steps() - 1)}, ranks_.take_sent_bytes()};
  }
  // Hash of the epoch's batches. It is computed after the epoch, so that no step waits for it. Empty on all
  // stages but the first, which records it.
  std::string batches(const Dataset& data, std::int64_t epoch) const {
    if (ranks_.position.stage > 0 || ranks_.position.part > 0) return "";
    return training_sampler(data).batches_hash(
        epoch_order(data, run_.global_batch, run_.seed, epoch, run_.steps_per_epoch));
  }
  // Device use of the last training epoch.
  DeviceUse device_use() const { return meter_.use(); }

  // Evaluates this rank's part of `data`.
  MetricSums evaluate(Trainer& trainer, const Dataset& data, Phase phase, std::int64_t epoch) {
    const Sampler sampler = evaluation_sampler(data);
    seen_.begin();
    MetricSums sums = trainer.evaluate(data, sampler, [&](std::int64_t step, const MetricSums& so_far) {
      show(phase, epoch, step, sampler, so_far);
    });
    synchronize(ranks_.device);
    return sums;
  }

  // Translates this rank's part of `data` and adds its BLEU sums.
  void add_translations(MetricSums& sums, Trainer& trainer, const Dataset& data) {
    const Sampler sampler = evaluation_sampler(data);
    const at::Tensor order = evaluation_order(data);
    for (std::int64_t k = 0; k < sampler.steps(); ++k) {
      const auto padded = data.in_step(sampler.indices_of_all(order, k));
      add_bleu(sums, padded ? *padded : data, sampler.indices(order, k),
               [&](const networks::Activations& inputs) { return trainer.next_tokens(inputs); });
      show(Phase::test, run_.epochs, k + 1, sampler, sums);
    }
  }

 private:
  void show(Phase phase, std::int64_t epoch, std::int64_t step, const Sampler& sampler,
            const MetricSums& so_far) {
    if (records_.progress_due()) records_.progress(phase, epoch, step, sampler.steps(), seen_.poll(so_far));
  }

  Sampler training_sampler(const Dataset& data) const {
    const bool is_whole = run_.strategy.sharing_replicas() == 1 && !ranks_.position.is_server();
    return {epoch_samples(data, run_.global_batch, run_.steps_per_epoch), run_.global_batch,
            is_whole ? 0 : ranks_.position.replica, run_.strategy.sharing_replicas(), resolved_.sampling};
  }
  Sampler evaluation_sampler(const Dataset& data) const {
    return {data.size(), run_.global_batch, ranks_.position.replica, ranks_.mesh.replicas};
  }

  const ResolvedRun& resolved_;
  const experiments::Run& run_;
  const Connections& ranks_;
  RankRecords& records_;
  DeviceMeter meter_;
  AsyncMetrics seen_;
};

// "1x28x28, 10 classes", "vocabulary 10000, 2 classes".
std::string shape_text(const models::InputShape& input) {
  std::vector<std::string> parts;
  const models::ImageShape& image = input.image;
  if (image.pixels() > 0)
    parts.push_back(std::to_string(image.channels) + "x" + std::to_string(image.height) + "x" +
                    std::to_string(image.width));
  if (input.vocabulary > 0) parts.push_back("vocabulary " + std::to_string(input.vocabulary));
  if (input.target_vocabulary > 0)
    parts.push_back("target vocabulary " + std::to_string(input.target_vocabulary));
  if (input.classes > 0) parts.push_back(std::to_string(input.classes) + " classes");
  return joined(parts);
}

std::optional<GpuSettings> gpu_settings(const Trainer& trainer, const Connections& ranks) {
  if (!ranks.device.is_cuda()) return std::nullopt;
  return GpuSettings{gpu_facts(ranks.device.index()).name, trainer.network().channels_last,
                     trainer.why_not_captured()};
}

// The logs of one epoch after the other.
MakeUpdate replay_in(const std::filesystem::path& folder, const experiments::Run& run) {
  return replay_of(run, [folder, servers = run.strategy.servers, epoch = std::int64_t{0}]() mutable {
    ++epoch;
    std::vector<ServerEvents> logs;
    logs.reserve(static_cast<std::size_t>(servers));
    for (int server = 0; server < servers; ++server)
      logs.push_back(experiments::read_server_log(folder / experiments::server_log_name(server, epoch)));
    return logs;
  });
}

// A hash of all parameters, if their order of updates depends on time. Replica 0 records it.
std::string hash_of_async(const Trainer& trainer, const experiments::Run& run, const Connections& ranks) {
  if (!run.strategy.is_async() || ranks.position.replica != 0) return "";
  constexpr std::size_t digits = 15;
  const nlohmann::json hashes = parameter_hashes(trainer.network().parameters());
  return sha256_hex(hashes.dump()).substr(0, digits);
}

// Parameters that every part has count once.
std::int64_t counted_parameters(const Trainer& trainer, const Connections& ranks) {
  std::int64_t count = trainer.network().parameter_count();
  if (ranks.position.part > 0)
    for (const auto& parameter : uncut(trainer.network().parameters())) count -= parameter.value.numel();
  return count;
}

void check_enough(const Dataset& train, const Mesh& mesh) {
  if (train.size() >= mesh.replicas) return;
  throw UserError(std::to_string(train.size()) + " training samples are fewer than " +
                      std::to_string(mesh.replicas) + " replicas",
                  "train with more samples or fewer replicas");
}

}  // namespace

void train(const experiments::Launch& launch, const Environment& environment, RankRecords& records,
           const Replays& replays) {
  records.progress(Phase::setup, 0, 0, 0, {}, true);

  // Select the device and connect the ranks.
  const DeviceAssignment assignment = resolve_device(launch, environment);
  set_device(assignment.device);
  const int threads = configure_threads(launch, environment.rank, assignment, records);
  Connections ranks = replays ? unconnected(assignment.device)
                              : connect(environment, mesh_of(launch.run.strategy, environment.world_size),
                                        launch.circumstances.communicator, assignment);
  if (launch.run.strategy.independent()) {
    ranks.barrier();  // start together, then train without connections
    std::unique_ptr<Communicator> all = std::move(ranks.replicas);
    ranks = unconnected(assignment.device);
    if (experiments::find_strategy(launch.run.strategy.kind).in_step) ranks.in_step = std::move(all);
  }
  try {
    train(launch, ranks, threads, records, replays);
  } catch (const c10::Error& error) {
    const auto refused = bytes_refused(error.what_without_backtrace());
    if (!refused) throw;
    throw out_of_memory(launch.run, assignment.device.str(), *refused, device_memory(assignment.device));
  }
}

void train(const experiments::Launch& launch, const Connections& ranks, int threads, RankRecords& records,
           const Replays& replays) {
  const ResolvedRun resolved = resolve(launch.run);
  const experiments::Run& run = resolved.run;
  const Mesh& mesh = ranks.mesh;
  use_precision(resolved.precision, ranks.device);

  // Build the layers of this rank's stage, equal in every replica, and their optimizer.
  const models::InputShape input = input_of(run.data);
  Trainer trainer(resolved, input, ranks, {}, replays ? replay_in(*replays, run) : MakeUpdate());
  const auto parameters = trainer.network().parameters();
  check_equal_parameters(parameters, ranks.with_equal_layers());
  check_equal_parameters(uncut(parameters), *ranks.parts);
  const ParameterHashes initial_weights = parameter_hashes(whole_tensors(parameters, *ranks.parts));

  // Read the data. The sampler divides it among the replicas.
  const DataParts data = make_parts(models::read(run.data), trainer.task(), resolved.precision.parameters,
                                    trainer.network().channels_last, resolved.model.text_form);
  check_enough(*data.train, mesh);
  place(data, ranks.device, *ranks.replicas);
  records.start(launch, mesh, ranks.transport(), counted_parameters(trainer, ranks),
                {data.train->size(), data.validation->size(), data.test->size()}, threads, initial_weights,
                gpu_settings(trainer, ranks));
  log::info("starts", {{"run", launch.key},
                       {"attempt", launch.attempt},
                       {"model", run.model},
                       {"strategy", run.strategy.kind},
                       {"device", ranks.device.str()},
                       {"cores", cpu_list_text(affinity())},
                       {"transport", ranks.transport()},
                       {"threads", threads},
                       {"replicas", mesh.replicas},
                       {"stages", mesh.stages},
                       {"replica", ranks.position.replica},
                       {"stage", ranks.position.stage},
                       {"servers", mesh.servers},
                       {"part", ranks.position.part},
                       {"parameters", trainer.network().parameter_count()},
                       {"data", run.data.source},
                       {"sample", shape_text(input)},
                       {"train", data.train->size()},
                       {"validation", data.validation->size()},
                       {"test", data.test->size()},
                       {"batch", run.global_batch},
                       {"epochs", run.epochs}});

  if (launch.probe) {
    records.progress(Phase::probe, 0, 0, probed_steps, {}, true);
    const auto record = [&](const ProbedStep& outcome) {
      if (!ranks.position.is_server()) records.probe(outcome);
    };
    if (run.strategy.is_async())
      probe_replay(resolved, input, *data.train, ranks, record);
    else
      probe_parity(resolved, input, *data.train, ranks, record);
  }

  // Train and evaluate each epoch.
  if (launch.devices_shared) trainer.measure_seconds_on_core();
  WeightSaver weights(run.save, launch.records / weights_file_name, ranks);
  EpochRunner epoch_runner(resolved, ranks, records);
  const Checkpoints checkpoints(launch, ranks);
  for (std::int64_t epoch = checkpoints.resume(trainer, weights) + 1; epoch <= run.epochs; ++epoch) {
    const EpochTiming timing = epoch_runner.train(trainer, *data.train, epoch);
    Stopwatch watch;
    MetricSums validation = epoch_runner.evaluate(trainer, *data.validation, Phase::validation, epoch);
    const double validation_seconds = watch.lap();
    weights.epoch_done(trainer.network(), validation);
    const ServerLog log = trainer.take_server_log();
    if (!log.events.empty())
      experiments::write_server_log(
          launch.records / experiments::server_log_name(ranks.position.stage - mesh.stages, epoch),
          log.events);
    records.epoch({epoch, timing.seconds, timing.processor_seconds, validation_seconds, trainer.take_times(),
                   trainer.take_scaled_steps(), epoch_runner.device_use(), trainer.take_metrics(),
                   std::move(validation), epoch_runner.batches(*data.train, epoch), timing.learning_rates,
                   hash_of_async(trainer, run, ranks), log.staleness, timing.sent_bytes, trainer.held()});
    records.replayed_steps(trainer.why_not_captured());
    checkpoints.epoch_done(epoch, trainer, weights, records);
  }

  // Test after training.
  Stopwatch watch;
  MetricSums test = epoch_runner.evaluate(trainer, *data.test, Phase::test, run.epochs);
  if (trainer.task().target() == Target::translation)
    epoch_runner.add_translations(test, trainer, *data.test);
  if (const double deviation = data.test->target_deviation(); deviation > 0)
    test.add("deviation", deviation, 1);
  records.test(watch.lap(), test);

  // No rank exits while another may still need it.
  ranks.barrier();
  records.finished();
}

}  // namespace trainyard::runner
