// The measured step times of runs, by rank and part. `trainyard predict` uses them as its input and compares
// its predictions with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/database/database.h"

namespace trainyard::db {

// Seconds by part (experiments/protocol/time_parts.h), which add up to the epoch. `transfer` is contained in
// exposed_communication. A part that was not recorded is absent.
using SecondsByPart = std::map<std::string, double>;

struct RankTimes {
  SecondsByPart passed;
  SecondsByPart on_core;  // the part of it on the rank's core; recorded if ranks share cores
};

// The median of the timed epochs (timed_epoch) by their slowest rank. For an even number it is the mean of
// the two in the middle. Verdicts use the same seconds (`epoch_train_seconds`).
struct MedianEpoch {
  std::string run_key;
  double train_seconds = 0;
  double steps = 0;              // 0: not recorded
  std::vector<RankTimes> ranks;  // from rank 0
  std::string transport;         // between the ranks, as rank 0 recorded it; empty: not recorded
};

// The median epochs of finished runs, from epochs that all ranks have recorded, in order of first planning.
// UserError if the file cannot be read.
std::vector<MedianEpoch> middle_epochs(const Database& database, const std::string& experiment);

}  // namespace trainyard::db
