// Whose times are compared: all epochs but the first of each attempt, which warms up. Of fewer than 3 none is
// dropped, nor where each attempt has trained one only. `RunStates` and the view `timed_epoch` say the same
// in SQL.
#pragma once

#include <algorithm>
#include <vector>

namespace trainyard::db {

// Of the epochs of one run, which say `first_of_attempt`, those that count.
template <typename Epoch>
std::vector<Epoch> timed(std::vector<Epoch> epochs) {
  const auto is_first = [](const Epoch& epoch) { return epoch.first_of_attempt; };
  if (epochs.size() >= 3 && !std::ranges::all_of(epochs, is_first)) std::erase_if(epochs, is_first);
  return epochs;
}

}  // namespace trainyard::db
