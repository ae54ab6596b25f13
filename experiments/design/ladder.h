// What `trainyard explain` trains in addition (docs/explain.md).
// - A ladder: the steps from one process to an arm, with one change each.
// - A probe: a few steps of an arm, and of one process with the same samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/parameter.h"

namespace trainyard::experiments {

struct Rung {
  std::string name;                                     // of its strategy
  std::vector<std::pair<std::string, Value>> settings;  // all changes against the baseline, the newest last
};

struct Ladder {
  std::string baseline;     // strategy, of the kind "single"
  std::vector<Rung> rungs;  // from the baseline to the arm, which differs from the last one only by its mesh
  std::string arm;          // strategy
  std::vector<Rung> remedies;  // further steps from the arm: what to try
  // From an N-th of an epoch of the baseline to an epoch of the arm, whose N replicas have equal parts. They train N times as
  // much, so their times are divided by N. Empty: the arm has other ranks than replicas.
  std::vector<Rung> of_times = {};
  std::int64_t replicas = 1;  // N
};

struct Probe {
  std::string baseline, arm;          // strategies
  std::map<std::string, Value> axes;  // values of the axes of the matrix
  std::string folder;                 // of the arm's samples
  double samples = 0;                 // of a step of the baseline
};

}  // namespace trainyard::experiments
