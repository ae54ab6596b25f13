#include "models/samples/raw_texts.h"

namespace trainyard::models {

namespace {

template <typename T>
std::vector<T> picked(const std::vector<T>& all, const std::vector<std::int64_t>& indices) {
  std::vector<T> some;
  if (all.empty()) return some;
  some.reserve(indices.size());
  for (const std::int64_t index : indices) some.push_back(all[static_cast<std::size_t>(index)]);
  return some;
}

}  // namespace

RawTexts selected(const RawTexts& texts, const std::vector<std::int64_t>& indices) {
  return {.source = picked(texts.source, indices),
          .target = picked(texts.target, indices),
          .labels = picked(texts.labels, indices)};
}

}  // namespace trainyard::models
