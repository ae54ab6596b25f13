// «did you mean …?»: the known name nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::models {

// The name of `known` within edit distance max(1, length / 3) of `name` (Damerau-Levenshtein, optimal string
// alignment); empty where none is near. Ties go to the earlier name.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// «; did you mean "x"?» or, where nothing is near, «; known are a, b, c»: to append to an error.
std::string name_advice(std::string_view name, std::span<const std::string> known);

}  // namespace trainyard::models
