// A TOML file as a tree of plain values with locations, in the order of the file. Hides toml++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"

namespace trainyard::experiments {

inline constexpr std::size_t max_file_bytes = 1 << 20;

struct TomlMember;

struct TomlNode {
  struct Date {};  // dates and times, which no key allows
  using List = std::vector<TomlNode>;
  using Table = std::vector<TomlMember>;  // in the order of the file
  Location at;
  std::variant<Date, bool, std::int64_t, double, std::string, List, Table> content;

  const Table* table() const { return std::get_if<Table>(&content); }
  const List* list() const { return std::get_if<List>(&content); }
  const std::string* text() const { return std::get_if<std::string>(&content); }
};

struct TomlMember {
  std::string name;
  Location at;  // of the name
  TomlNode value;
};

struct NotToml {
  Location at;
  std::string message;
};

// The root table. NotToml if the text is not TOML or a key has more than `max_key_parts` parts.
TomlNode parse_toml(const std::string& text, const std::string& file);
inline constexpr int max_key_parts = 32;

// Parses one value as after `key =`. Empty if it is not a value.
std::optional<TomlNode> parse_toml_value(const std::string& text, const Location& at);

// The value of a scalar or a list of numbers. Empty for tables, dates and other lists.
std::optional<Value> as_value(const TomlNode& item);

// The node for a message: its value as in TOML, or "a list", "a table", "a date".
std::string description(const TomlNode& item);

}  // namespace trainyard::experiments
