#include "experiments/config/diagnostics.h"

#include <algorithm>

namespace trainyard::experiments {

std::vector<Problem> Diagnostics::in_file_order() const {
  std::vector<Problem> sorted = problems_;
  std::ranges::stable_sort(
      sorted, {}, [](const Problem& each) { return std::pair(each.location.line, each.location.column); });
  return sorted;
}

void Diagnostics::add_all(const Diagnostics& other) {
  for (const Problem& problem : other.problems_) add(problem);
}

void Diagnostics::add(Problem problem) {
  if (!problem.warning) ++errors_;
  if (!seen_.insert(to_text(problem)).second) return;
  problems_.push_back(std::move(problem));
}

}  // namespace trainyard::experiments
