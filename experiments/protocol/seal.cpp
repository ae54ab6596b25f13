#include "experiments/protocol/seal.h"

#include <optional>

#include "base/error.h"
#include "experiments/protocol/crc32c.h"

namespace trainyard::experiments {

namespace {

constexpr std::string_view spaces = " \t\r\n";

// Reads a text from its end.
class Backwards {
 public:
  explicit Backwards(std::string_view text) : text_(text) {}

  bool take(char expected) {
    skip_spaces();
    if (!text_.ends_with(expected)) return false;
    text_.remove_suffix(1);
    return true;
  }
  // A string without escapes.
  std::optional<std::string_view> take_string() {
    if (!take('"')) return std::nullopt;
    const std::size_t quote = text_.rfind('"');
    if (quote == std::string_view::npos) return std::nullopt;
    const std::string_view string = text_.substr(quote + 1);
    text_.remove_suffix(string.size() + 1);
    return string;
  }
  std::string_view rest() const { return text_; }

 private:
  void skip_spaces() { text_.remove_suffix(text_.size() - (text_.find_last_not_of(spaces) + 1)); }

  std::string_view text_;
};

struct LastMember {
  std::string_view name, value;
  std::string_view before;  // all bytes before its comma
};

// The last member of an object, if its value is a string.
std::optional<LastMember> last_member(std::string_view object) {
  Backwards text(object);
  if (!text.take('}')) return std::nullopt;
  const auto value = text.take_string();
  if (!value || !text.take(':')) return std::nullopt;
  const auto name = text.take_string();
  if (!name || !text.take(',')) return std::nullopt;
  return LastMember{*name, *value, text.rest()};
}

}  // namespace

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
  const auto last = last_member(text);
  if (!object.contains("crc")) {
    // A damaged name would hide the seal.
    if (last && last->value.size() == 8 && last->value == hexadecimal(crc32c(last->before)))
      return "the name of the member crc is damaged";
    return seal == Seal::required ? "has no checksum (crc)" : "";
  }
  if (!last || last->name != "crc")
    return "crc is not the last member, written as ,\"crc\":\"8 hexadecimal digits\"";
  const std::string expected = hexadecimal(crc32c(last->before));
  if (last->value == expected) return "";
  return "CRC is " + std::string(last->value) + ", should be " + expected;
}

}  // namespace trainyard::experiments
