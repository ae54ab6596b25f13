// Checkpoints of a rank's training (experiments/protocol/checkpoint.h has the file): after each epoch, where
// the run asks for them, replica 0 of each stage writes the parameters, running statistics and optimizer
// state of its stage, the number of steps, and how good the kept weights are. That is all a run goes on from:
// order of samples, augmentation, dropout and learning rate are pure functions of seed, epoch and step. So a
// run that goes on trains, on the same CPU, the same bits as one that was never interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "experiments/protocol/checkpoint.h"
#include "experiments/protocol/launch.h"
#include "models/networks/network.h"
#include "runner/data/task.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/trainer.h"
#include "runner/training/rank_records.h"

namespace trainyard::runner {

// Saves the weights of a run as one safetensors file, whatever the mesh: parameters and running
// statistics of all stages, under the names that the network on one device gives them.

inline constexpr const char* weights_file_name = "weights.safetensors";

class WeightSaver {
 public:
  enum class SavePolicy { nothing, last, best };

  // `save` is "" (nothing is kept), "last" or "best"; `file` is written by rank 0. UserError for another
  // word.
  WeightSaver(const std::string& save, std::filesystem::path file, const Connections& ranks);

  // How good the kept weights are, for a run that is interrupted and goes on.
  struct Kept {
    bool any = false;
    double validation_loss = std::numeric_limits<double>::infinity();  // of the best epoch
  };
  const Kept& kept() const { return kept_; }
  void resume(const Kept& kept) { kept_ = kept; }

  // After an epoch: "last" keeps each, "best" that of the lowest mean validation loss so far; `validation`
  // holds this rank's part of it. Collective.
  void epoch_done(const networks::Network& stage, const MetricSums& validation);

 private:
  bool is_best(const MetricSums& validation);
  void write(const networks::Network& stage) const;

  SavePolicy keeps_;
  std::filesystem::path file_;
  const Connections& ranks_;
  Kept kept_;
};

class Checkpoints {
 public:
  // `launch` and `ranks` must outlive it.
  Checkpoints(const experiments::Launch& launch, const Connections& ranks);

  // Puts `trainer` and `weights` where the run goes on, each replica from the file of its stage; returns the
  // last epoch that is done, 0 where the run begins. UserError for a checkpoint that is damaged or another
  // one than the launch says.
  std::int64_t resume(Trainer& trainer, WeightSaver& weights) const;

  // After the records of `epoch` are durable; no time of the epoch. std::system_error where the disk does not
  // take it: what was written before stays. Those before the last two are removed.
  void epoch_done(std::int64_t epoch, const Trainer& trainer, const WeightSaver& weights,
                  RankRecords& records) const;

 private:
  bool writes() const;
  std::optional<experiments::FileSum> keep_weights(std::int64_t epoch) const;
  void remove_all_but(std::int64_t first, std::int64_t last) const;

  const experiments::Launch& launch_;
  const Connections& ranks_;
};

}  // namespace trainyard::runner
