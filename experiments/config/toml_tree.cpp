#include "experiments/config/toml_tree.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/text.h"

namespace trainyard::experiments {

namespace {

Location place(const toml::source_position& position, const std::string& file) {
  return {file, static_cast<int>(position.line), static_cast<int>(position.column)};
}

TomlNode to_item(const toml::node& node, const std::string& file);

// The members in the order of the file, because toml++ sorts them by name.
TomlNode::Table to_table(const toml::table& table, const std::string& file) {
  TomlNode::Table members;
  for (const auto& [key, node] : table)
    members.push_back({std::string(key.str()), place(key.source().begin, file), to_item(node, file)});
  std::ranges::stable_sort(members, {},
                           [](const TomlMember& each) { return std::pair(each.at.line, each.at.column); });
  return members;
}

TomlNode::List to_list(const toml::array& array, const std::string& file) {
  TomlNode::List items;
  for (const toml::node& node : array) items.push_back(to_item(node, file));
  return items;
}

TomlNode to_item(const toml::node& node, const std::string& file) {
  TomlNode item{place(node.source().begin, file), TomlNode::Date{}};
  if (const auto* table = node.as_table()) item.content = to_table(*table, file);
  if (const auto* array = node.as_array()) item.content = to_list(*array, file);
  if (const auto* text = node.as_string()) item.content = text->get();
  if (const auto* integer = node.as_integer()) item.content = integer->get();
  if (const auto* number = node.as_floating_point()) item.content = number->get();
  if (const auto* boolean = node.as_boolean()) item.content = boolean->get();
  return item;
}

bool in_key(char character) {
  const auto code = static_cast<unsigned char>(character);
  return std::isalnum(code) != 0 || code >= 0x80 ||
         std::string_view("_-\"' \t.").find(character) != std::string_view::npos;
}

// Rejects keys with very many parts before parsing: the recursion of the parser would overflow the stack.
// Numbers and sentences have too few points to be rejected.
void refuse_long_keys(std::string_view text, const std::string& file) {
  Location at{file, 1, 0};
  int points = 0;
  char last = '\0';
  for (const char character : text) {
    ++at.column;
    if (character == '\n') at = {file, at.line + 1, 0};
    if (!in_key(character) || (character == '.' && last == '.')) points = 0;
    if (character == '.' && last != '.' && ++points >= max_key_parts)
      throw NotToml{at, fmt::format("a key has more than {} parts", max_key_parts)};
    if (character != ' ' && character != '\t') last = character;
  }
}

// The message of toml++ without its prefix "Error while ".
std::string not_toml(std::string_view description) {
  constexpr std::string_view start = "Error while ";
  if (description.starts_with(start)) description.remove_prefix(start.size());
  return "not TOML: " + printable_line(description);
}

std::optional<Value> list_value(const TomlNode::List& items) {
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  for (const TomlNode& item : items) {
    if (const auto* integer = std::get_if<std::int64_t>(&item.content)) {
      integers.push_back(*integer);
      numbers.push_back(static_cast<double>(*integer));
    } else if (const auto* number = std::get_if<double>(&item.content)) {
      numbers.push_back(*number);
    } else {
      return std::nullopt;
    }
  }
  if (integers.size() == items.size()) return integers;
  return numbers;
}

// Its text is not in a file, so all of it is at one place.
void put_at(const Location& at, TomlNode& node) {
  node.at = at;
  if (auto* list = std::get_if<TomlNode::List>(&node.content))
    for (TomlNode& item : *list) put_at(at, item);
  if (auto* table = std::get_if<TomlNode::Table>(&node.content))
    for (TomlMember& member : *table) {
      member.at = at;
      put_at(at, member.value);
    }
}

}  // namespace

TomlNode parse_toml(const std::string& text, const std::string& file) {
  refuse_long_keys(text, file);
  try {
    return to_item(toml::parse(text, file), file);
  } catch (const toml::parse_error& error) {
    throw NotToml{place(error.source().begin, file), not_toml(error.description())};
  }
}

std::optional<TomlNode> parse_toml_value(const std::string& text, const Location& at) {
  try {
    const TomlNode root = parse_toml("value = " + text, at.file);
    const TomlNode::Table& members = *root.table();
    if (members.size() != 1 || members.front().name != "value") return std::nullopt;
    TomlNode value = members.front().value;
    put_at(at, value);
    return value;
  } catch (const NotToml&) {
    return std::nullopt;
  }
}

std::optional<Value> as_value(const TomlNode& item) {
  if (const auto* boolean = std::get_if<bool>(&item.content)) return *boolean;
  if (const auto* integer = std::get_if<std::int64_t>(&item.content)) return *integer;
  if (const auto* number = std::get_if<double>(&item.content)) return *number;
  if (const std::string* text = item.text()) return *text;
  if (const TomlNode::List* list = item.list()) return list_value(*list);
  return std::nullopt;
}

// How much of a value a message repeats.
constexpr std::size_t repeated_columns = 120;

std::string description(const TomlNode& item) {
  if (const auto value = as_value(item)) return shortened(trainyard::to_text(*value), repeated_columns);
  if (item.table() != nullptr) return "a table";
  return item.list() != nullptr ? "a list" : "a date";
}

}  // namespace trainyard::experiments
