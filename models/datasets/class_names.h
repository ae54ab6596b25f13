// Names of the classes of the known data sets, in the order of their labels.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace trainyard::models {

inline constexpr std::array<std::string_view, 10> fashion_mnist_classes{
    "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"};
inline constexpr std::array<std::string_view, 10> cifar10_classes{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
inline constexpr std::array<std::string_view, 2> review_classes{"bad", "good"};

// `source`: the data set that was read. Empty if its classes have no names here, or if the names are the
// numbers, as for digits.
constexpr std::span<const std::string_view> class_names(std::string_view source) {
  if (source == "fashion-mnist") return fashion_mnist_classes;
  if (source == "cifar10") return cifar10_classes;
  if (source == "imdb" || source == "synthetic-reviews") return review_classes;
  return {};
}

}  // namespace trainyard::models
