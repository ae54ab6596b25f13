// The row of a table that has a name: what a user chooses by name (a model, an optimizer, a schedule) stands
// in a table, and all such tables are asked here.
#pragma once

#include <algorithm>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace trainyard {

// «did you mean …?»: the known name nearest to a mistyped one.

// The name of `known` within edit distance max(1, length / 3) of `name` (Damerau-Levenshtein, optimal string
// alignment); empty where none is near. Ties go to the earlier name.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// «; did you mean "x"?» or, where nothing is near, «; known are a, b, c»: to append to an error.
std::string name_advice(std::string_view name, std::span<const std::string> known);

// The row of which `name_of`, a member or a function, is `name`; nullptr where there is none.
template <std::ranges::borrowed_range Rows, typename NameOf>
const auto* row_or_null(Rows&& rows, NameOf name_of, std::string_view name) {
  const auto found = std::ranges::find(rows, name, name_of);
  return found == std::ranges::end(rows) ? nullptr : &*found;
}

// Likewise, but where there is none UserError: «there is no `noun` "`name`"» with the nearest name or all
// names. A row without a name is none that a user would choose, and is not named.
template <std::ranges::borrowed_range Rows, typename NameOf>
const auto& named_row(Rows&& rows, NameOf name_of, const std::string& noun, std::string_view name) {
  if (const auto* row = row_or_null(rows, name_of, name)) return *row;
  std::vector<std::string> known;
  for (const auto& row : rows) {
    const std::string_view each = std::invoke(name_of, row);
    if (!each.empty()) known.emplace_back(each);
  }
  throw UserError("there is no " + noun + " \"" + std::string(name) + "\"", name_advice(name, known));
}

}  // namespace trainyard
