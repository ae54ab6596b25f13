// Seals of JSON objects: the last member `crc` has the CRC-32C of all bytes before its comma, as eight
// hexadecimal digits. Records, journal entries and run files have one.
// - The object can be compact or indented, so the bytes before the seal stay as they were.
// - Only records of foreign programs may be without one.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace trainyard::experiments {

// `object` with a seal. `object` is the text of a JSON object with members, without a newline at its end.
std::string sealed(std::string object);

enum class Seal { required, optional };
// "CRC is ab4be0be, should be …": what is wrong with the seal of `text`. Empty if it is right, or absent and
// optional. `object` is the parsed form of `text`.
std::string seal_problem(std::string_view text, const nlohmann::json& object, Seal seal = Seal::required);

}  // namespace trainyard::experiments
