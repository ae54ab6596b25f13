// Where the time of a run's steps went, rank by rank: what `trainyard predict` holds a prediction against and
// feeds it with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/database/database.h"

namespace trainyard::db {

// Seconds by part (experiments/protocol/time_parts.h), and `transfer`, a part of exposed_communication. The
// others add up. What was not recorded is absent.
using SecondsByPart = std::map<std::string, double>;

struct RankTimes {
  SecondsByPart passed;
  SecondsByPart on_core;  // of them, on the rank's core: recorded where ranks share cores
};

// The epoch in the middle of those whose times are compared (timed_epoch), by its slowest rank; of an even
// number the mean of the two in the middle. Its seconds are those of verdicts (`epoch_train_seconds`).
struct MedianEpoch {
  std::string run_key;
  double train_seconds = 0;
  double steps = 0;              // 0: not recorded
  std::vector<RankTimes> ranks;  // from rank 0
  std::string transport;         // between them, as rank 0 recorded it; empty: not recorded
};

// Of the finished runs of an experiment whose ranks have all recorded it, in order of first planning.
// UserError where the file cannot be read.
std::vector<MedianEpoch> middle_epochs(const Database& database, const std::string& experiment);

}  // namespace trainyard::db
