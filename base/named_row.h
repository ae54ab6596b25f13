// Look up a row of a table by its name, and suggest a name if there is no such row.
// Models, optimizers, schedules and everything else that a user chooses by name are rows of such tables.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trainyard {

// The known name that is nearest to a mistyped one. Empty if none is near.
// - Near: the edit distance is at most max(1, length of `name` / 3). Capital letters count as small ones.
// - If two names are equally near, the first of them is returned.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// Advice to append to an error: `; did you mean "x"?`, or `; choose from a, b, c` if no name is near.
std::string name_advice(std::string_view name, std::span<const std::string> known);

// The row with this name, or nullptr if there is none. `name_of` is a member or a function of a row.
template <std::ranges::borrowed_range Rows, typename NameOf>
const auto* row_or_null(Rows&& rows, NameOf name_of, std::string_view name) {
  const auto found = std::ranges::find(rows, name, name_of);
  return found == std::ranges::end(rows) ? nullptr : &*found;
}

// The names of the rows that a user can choose: those that are not empty.
template <typename Rows, typename NameOf>
std::vector<std::string> names_of(const Rows& rows, NameOf name_of) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (std::string name(std::invoke(name_of, row)); !name.empty()) names.push_back(std::move(name));
  return names;
}

// The value of a key in a map, or nullptr if there is none.
template <typename Map>
const auto* value_or_null(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// The row with this name. UserError if there is none: `there is no NOUN "NAME"`, with `name_advice`.
template <std::ranges::borrowed_range Rows, typename NameOf>
const auto& named_row(Rows&& rows, NameOf name_of, const std::string& noun, std::string_view name) {
  if (const auto* row = row_or_null(rows, name_of, name)) return *row;
  throw UserError("there is no " + noun + " \"" + std::string(name) + "\"",
                  name_advice(name, names_of(rows, name_of)));
}

}  // namespace trainyard
