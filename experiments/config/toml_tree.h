// A TOML file as a tree of plain values in the order of the file, each with its place. The only part that
// knows toml++; everything else of `file` reads this tree.
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
  struct Date {};  // dates and times: nothing here takes one
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

// The root table. Throws NotToml, also for keys of more than `max_key_parts` parts.
TomlNode parse_toml(const std::string& text, const std::string& file);
inline constexpr int max_key_parts = 32;

// One value as it would stand after `key =`; nothing where it is none.
std::optional<TomlNode> parse_toml_value(const std::string& text, const Location& at);

// Scalars and lists of numbers as a parameter's value; nothing for tables, dates and other lists.
std::optional<Value> as_value(const TomlNode& item);

// What an item is, for messages: its value as in TOML, or "a list", "a table", "a date".
std::string description(const TomlNode& item);

}  // namespace trainyard::experiments
