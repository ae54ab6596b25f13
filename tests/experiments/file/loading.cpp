#include "tests/experiments/file/loading.h"

#include <sstream>
#include <utility>

#include <doctest/doctest.h>

namespace trainyard::tests {

using namespace experiments;

std::vector<std::string> problems_of(const std::string& toml, const Selection& selection) {
  std::vector<std::string> lines;
  for (const Problem& problem : load_text(toml, "f.toml", selection).problems)
    lines.push_back(to_text(problem));
  return lines;
}

std::string problem_of(const std::string& toml, const Selection& selection) {
  return texts(load_text(toml, "f.toml", selection).problems);
}

std::string texts(const std::vector<Problem>& problems) {
  std::string all;
  for (const Problem& problem : problems) all += (all.empty() ? "" : "\n") + to_text(problem);
  return all;
}

Experiment loaded(const std::string& toml, const Selection& selection) {
  Loaded result = load_text(toml, "f.toml", selection);
  REQUIRE_MESSAGE(result.experiment.has_value(), texts(result.problems));
  return std::move(*result.experiment);
}

Labels labels(const Experiment& experiment) {
  Labels all;
  for (const Run& run : experiment.runs) all.push_back(label(run));
  return all;
}

namespace {

// Whether `text` begins with the parts of `pattern` in their order.
bool begins_as(const std::string& text, const std::string& pattern) {
  const std::string gap = "…";
  std::size_t at = 0, begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + gap.size()) {
    end = pattern.find(gap, begin);
    const std::string part = pattern.substr(begin, end - begin);
    const std::size_t found = text.find(part, at);
    if (found == std::string::npos || (begin == 0 && found != 0)) return false;
    at = found + part.size();
  }
  return true;
}

}  // namespace

void check_all(const std::vector<Wrong>& table) {
  for (const Wrong& wrong : table) {
    CAPTURE(wrong.toml);
    std::istringstream errors(wrong.errors);
    std::string error;
    for (const std::string& problem : problems_of(wrong.toml)) {
      REQUIRE_MESSAGE(!std::getline(errors, error).fail(), problem);
      const auto end = error.find(": ") + 2;  // of the place
      CHECK_MESSAGE(begins_as(problem, "f.toml:" + error.substr(0, end) + "error: " + error.substr(end)),
                    problem);
    }
    CHECK(std::getline(errors, error).fail());
  }
}

}  // namespace trainyard::tests
