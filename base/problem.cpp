#include "base/problem.h"

namespace trainyard {

std::string to_text(const Problem& problem) {
  const std::string place = to_text(problem.location);
  return (place.empty() ? "" : place + ": ") + (problem.warning ? "warning: " : "error: ") + problem.message;
}

}  // namespace trainyard
