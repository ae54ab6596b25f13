// Words and lists in sentences.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace trainyard::reports {

std::string upper_first(std::string text);  // "Accuracy"
std::string lower_first(std::string text);  // "accuracy"

// "learning rate" for "learning_rate".
std::string with_spaces(std::string name);

// "other processes took 32 – 78 % of their cores", from the least and the largest share.
std::string load_text(double least, double most);

// "MLP, CNN and VGG11"; more than `most` names: "MLP, CNN, VGG11 and 9 others".
std::string some_of(const std::vector<std::string>& names, std::size_t most = 4);
std::string all_of(const std::vector<std::string>& names);  // "MLP, CNN and VGG11"

std::string first_and_others(const std::vector<std::string>& arms);  // "MLP ddp and 2 other arms"

// The value of `key`, which is added if it is missing. Keys stay in the order in which they were added.
template <typename Key, typename Value>
Value& value_of_key(std::vector<std::pair<Key, Value>>& rows, const Key& key) {
  for (auto& [known, value] : rows)
    if (known == key) return value;
  return rows.emplace_back(key, Value{}).second;
}

// Adds a row, unless it is there.
template <typename Row>
void add_new(std::vector<Row>& rows, const Row& row) {
  if (std::ranges::find(rows, row) == rows.end()) rows.push_back(row);
}

}  // namespace trainyard::reports
