// What a data set looks like: samples by class, and how often each brightness occurs in each colour channel.
// For the pictures of a report; computed once a data set, from the arrays that a run reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/samples/samples.h"

namespace trainyard::models {

struct ChannelCounts {
  std::string name;                  // "red", "green", "blue"; "grey" of one channel
  std::vector<std::int64_t> counts;  // [64]: pixels of value 4i … 4i + 3
};
inline constexpr int brightness_bins = 64;

struct DataProfile {
  std::array<std::vector<std::int64_t>, 3>
      classes;                          // samples by class of train, validation, test; empty: no classes
  std::vector<ChannelCounts> channels;  // of the training part; empty: no images
};

DataProfile profile_of(const Splits& splits);

}  // namespace trainyard::models
