// Checkpoints of a rank's training (experiments/protocol/checkpoint.h has the file): after each epoch, where
// the run asks for them, replica 0 of each stage writes the parameters, running statistics and optimizer
// state of its stage, the number of steps, and how good the kept weights are. That is all a run goes on from:
// order of samples, augmentation, dropout and learning rate are pure functions of seed, epoch and step. So a
// run that goes on trains, on the same CPU, the same bits as one that was never interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "experiments/protocol/checkpoint.h"
#include "experiments/protocol/launch.h"
#include "runner/trainer/connections.h"
#include "runner/trainer/trainer.h"
#include "runner/training/rank_records.h"
#include "runner/training/weight_keeper.h"

namespace trainyard::runner {

class Checkpoints {
 public:
  // `launch` and `ranks` must outlive it.
  Checkpoints(const experiments::Launch& launch, const Connections& ranks);

  // Puts `trainer` and `weights` where the run goes on, each replica from the file of its stage; returns the
  // last epoch that is done, 0 where the run begins. UserError for a checkpoint that is damaged or another
  // one than the launch says.
  std::int64_t resume(Trainer& trainer, WeightKeeper& weights) const;

  // After the records of `epoch` are durable; no time of the epoch. std::system_error where the disk does not
  // take it: what was written before stays. Those before the last two are removed.
  void epoch_done(std::int64_t epoch, const Trainer& trainer, const WeightKeeper& weights,
                  RankRecords& records) const;

 private:
  bool writes() const;
  std::optional<experiments::FileSum> keep_weights(std::int64_t epoch) const;
  void remove_all_but(std::int64_t first, std::int64_t last) const;

  const experiments::Launch& launch_;
  const Connections& ranks_;
};

}  // namespace trainyard::runner
