// Texts as their source has them, checked to be UTF-8, before they are tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::models {

struct RawTexts {
  std::vector<std::string> source;   // [sample]
  std::vector<std::string> target;   // [sample], of translations
  std::vector<std::uint8_t> labels;  // [sample], of classification
  std::int64_t size() const { return static_cast<std::int64_t>(source.size()); }
};

RawTexts selected(const RawTexts& texts, const std::vector<std::int64_t>& indices);

}  // namespace trainyard::models
