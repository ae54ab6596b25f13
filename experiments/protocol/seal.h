// Seals of JSON objects: the last member `crc` has the CRC-32C of all bytes before its comma, as eight
// hexadecimal digits. Records, journal entries and run files have one.
// - The object can be compact or indented, so the bytes before the seal stay as they were.
// - Releases before the seal, and foreign programs, write objects without one.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace trainyard::experiments {

// `object` with a seal. `object` is the text of a JSON object with members, without a newline at its end.
std::string sealed(std::string object);

struct Seal {
  bool present = false;
  std::string problem;  // "CRC is ab4be0be, should be …"; empty if the seal is right, or absent
};
// The seal of `text`. `object` is its parsed form.
Seal seal_of(std::string_view text, const nlohmann::json& object);

}  // namespace trainyard::experiments
