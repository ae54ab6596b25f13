#include "experiments/protocol/record_lines.h"

#include <algorithm>

namespace trainyard::experiments {

void RecordLines::add(std::string_view bytes) {
  if (!too_long_) bytes_.append(bytes);
}

std::optional<std::string> RecordLines::next() {
  if (too_long_) return std::nullopt;
  const std::size_t end = bytes_.find('\n', searched_);
  const std::size_t size = std::min(end, bytes_.size()) - start_;
  if (size > longest_) {
    too_long_ = true;
    bytes_ = std::string();
    return std::nullopt;
  }
  if (end == std::string::npos) {
    bytes_.erase(0, start_);
    start_ = 0;
    searched_ = bytes_.size();
    return std::nullopt;
  }
  std::string line = bytes_.substr(start_, size);
  start_ = searched_ = end + 1;
  ++count_;
  return line;
}

}  // namespace trainyard::experiments
