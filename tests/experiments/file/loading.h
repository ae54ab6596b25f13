// Experiment files written as text in a test, all read as "f.toml": what they mean, and what is wrong with
// them.
#pragma once

#include <string>
#include <vector>

#include "experiments/file/file.h"

namespace trainyard::tests {

// What stands before a line under test, so that nothing else is wrong: one run of an MLP.
inline const std::string start = "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n";

// The lines that a person sees, as they stand in order.
std::vector<std::string> problems_of(const std::string& toml, const experiments::Selection& selection = {});
std::string problem_of(const std::string& toml, const experiments::Selection& selection = {});  // in one text
std::string texts(const std::vector<Problem>& problems);

// Fails the test where the file is wrong.
experiments::Experiment loaded(const std::string& toml, const experiments::Selection& selection = {});

using Labels = std::vector<std::string>;
Labels labels(const experiments::Experiment& experiment);

// A file and its one problem.
struct Wrong {
  std::string toml;
  std::string problem;
};
void check_all(const std::vector<Wrong>& table);

}  // namespace trainyard::tests
