#include "tests/experiments/file/loading.h"

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

void check_all(const std::vector<Wrong>& table) {
  for (const Wrong& wrong : table) {
    CAPTURE(wrong.toml);
    CHECK(problem_of(wrong.toml) == wrong.problem);
  }
}

}  // namespace trainyard::tests
