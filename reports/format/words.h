// Words and lists in sentences.
#pragma once

#include <string>
#include <vector>

namespace trainyard::reports {

std::string upper_first(std::string text);  // "Accuracy"
std::string lower_first(std::string text);  // "accuracy"

// "learning rate" for "learning_rate".
std::string with_spaces(std::string name);

// "MLP, CNN and VGG11"; more than `most` names: "MLP, CNN, VGG11 and 9 others".
std::string some_of(const std::vector<std::string>& names, std::size_t most = 4);
std::string all_of(const std::vector<std::string>& names);  // "MLP, CNN and VGG11"

}  // namespace trainyard::reports
