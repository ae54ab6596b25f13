// Checkpoints of a rank's training, and the saved weights of a run. experiments/protocol/checkpoint.h has the
// file format.
// - If the run has checkpoints, replica 0 of each stage writes one after each epoch, and so does each of its parts, each
//   server, and each replica that has slices of the state.
// - It contains the parameters, running statistics and optimizer state of the stage. It also contains the
//   number of steps and the validation loss of the saved weights.
// - Sample order, augmentation, dropout and learning rate are pure functions of seed, epoch and step. So a
//   resumed run computes the same bits on the same CPU as a run without an interruption.
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

inline constexpr const char* weights_file_name = "weights.safetensors";

// Saves the weights of a run as one safetensors file for any mesh: parameters and running statistics of all
// stages, with the names of the complete network.
class WeightSaver {
 public:
  enum class SavePolicy { nothing, last, best };

  // `save` is "" (save nothing), "last" or "best". Rank 0 writes `file`. UserError for another value.
  WeightSaver(const std::string& save, std::filesystem::path file, const Connections& ranks);

  // State of the saved weights, for a run that is resumed.
  struct Kept {
    bool any = false;
    double validation_loss = std::numeric_limits<double>::infinity();  // of the best epoch
  };
  const Kept& kept() const { return kept_; }
  void resume(const Kept& kept) { kept_ = kept; }

  // Call it after each epoch. "last" saves every epoch, "best" saves an epoch with the lowest mean validation
  // loss so far. `validation` has the sums of this rank. Collective.
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
  // `launch` and `ranks` must outlive the object.
  Checkpoints(const experiments::Launch& launch, const Connections& ranks) : launch_(launch), ranks_(ranks) {}

  // Restores `trainer` and `weights`. Each replica reads the checkpoint of its stage. Returns the last epoch
  // that is done, or 0 for a new run. UserError if the checkpoint is damaged or belongs to another attempt.
  std::int64_t resume(Trainer& trainer, WeightSaver& weights) const;

  // Writes a checkpoint, and removes all but the last two. Call it when the records of `epoch` are durable.
  // Its time is not part of the epoch. std::system_error if it cannot be written: older checkpoints remain.
  void epoch_done(std::int64_t epoch, const Trainer& trainer, const WeightSaver& weights,
                  RankRecords& records) const;

 private:
  bool writes() const;
  int own_checkpoint() const;
  std::optional<experiments::FileSum> keep_weights(std::int64_t epoch) const;
  void remove_all_but(std::int64_t first, std::int64_t last) const;

  const experiments::Launch& launch_;
  const Connections& ranks_;
};

}  // namespace trainyard::runner
