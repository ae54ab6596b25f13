// Parts of the training time of an epoch, by their names in `epoch` records (docs/record-protocol.md).
// Columns and queries of the database follow from this table.
#pragma once

#include <array>
#include <string_view>

namespace trainyard::experiments {

inline constexpr std::array<std::string_view, 7> time_parts{
    "data", "forward", "backward", "exposed_communication", "bubble", "optimizer", "other"};

}  // namespace trainyard::experiments
