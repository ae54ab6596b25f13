// JSON of an exported file: parsed within limits, and read with checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/exported/fault.h"

namespace trainyard::models::pt2 {

using Json = nlohmann::json;

inline constexpr std::size_t most_depth = 64;         // of objects and lists in each other
inline constexpr std::size_t most_items = 1'000'000;  // of a list

// Fault if `text` is longer than `most_bytes`, is not JSON, is too deep or has an object that names a member twice.
Json parsed(std::string_view text, std::size_t most_bytes);

// The member `name`. Fault if there is none, or `json` is not an object.
const Json& member(const Json& json, const std::string& name);
// The same, but null if there is none.
const Json* member_or_null(const Json& json, const std::string& name);

// The content of `json`. Fault if it has another type. Texts may contain control characters.
const std::string& text_in(const Json& json);
std::int64_t integer_in(const Json& json);
double number_in(const Json& json);  // infinities and NaN are texts, as in Python's JSON
bool flag_in(const Json& json);
const std::vector<Json>& list_in(const Json& json, std::size_t most = most_items);
const Json::object_t& object_in(const Json& json);

// A text that names something: not empty, at most 1,000 bytes, no control characters.
const std::string& name_in(const Json& json);

// An object with exactly one member: {"as_int": 3} is ("as_int", 3).
std::pair<const std::string&, const Json&> choice_in(const Json& json);

}  // namespace trainyard::models::pt2
