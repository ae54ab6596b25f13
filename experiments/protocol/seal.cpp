#include "experiments/protocol/seal.h"

#include <algorithm>

#include "base/error.h"
#include "experiments/protocol/crc32c.h"

namespace trainyard::experiments {

static constexpr std::string_view spaces = " \t\r\n";

std::string sealed(std::string object) {
  const bool has_members = object.size() > 2 && object.starts_with('{') && object.ends_with('}');
  if (!has_members) throw InternalError("only an object with members can be sealed");
  const std::size_t end = object.find_last_not_of(spaces, object.size() - 2) + 1;
  const bool indented = end != object.size() - 1;
  object.resize(end);
  const std::string crc = hexadecimal(crc32c(object));
  if (indented) return object.append(",\n  \"crc\": \"").append(crc).append("\"\n}");
  return object.append(",\"crc\":\"").append(crc).append("\"}");
}

std::string seal_problem(std::string_view text, const nlohmann::json& object, Seal seal) {
  constexpr std::string_view name = "\"crc\":\"";
  const std::size_t comma = std::min(text.rfind(','), text.size());
  std::string last(text.substr(comma));  // the last member, from its comma on
  std::erase_if(last, [](char each) { return spaces.find(each) != std::string_view::npos; });
  const std::string expected = hexadecimal(crc32c(text.substr(0, comma)));
  if (!object.contains("crc")) {
    if (last.ends_with(":\"" + expected + "\"}"))  // a damaged name would hide the seal
      return "the name of the member crc is damaged";
    return seal == Seal::required ? "has no checksum (crc)" : "";
  }
  if (!last.starts_with(',' + std::string(name)) || !last.ends_with("\"}"))
    return "crc is not the last member, written as ,\"crc\":\"8 hexadecimal digits\"";
  const std::string found = last.substr(1 + name.size(), last.size() - name.size() - 3);
  return found == expected ? "" : "CRC is " + found + ", should be " + expected;
}

}  // namespace trainyard::experiments
