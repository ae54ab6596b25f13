// Loads experiment files from text. All are named "f.toml".
#pragma once

#include <string>
#include <vector>

#include "experiments/file/file.h"

namespace trainyard::tests {

// The lines before a line under test: a valid file with one run of an MLP.
inline const std::string start = "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\n";

// The problems as a user sees them, in the order of the file.
std::vector<std::string> problems_of(const std::string& toml, const experiments::Selection& selection = {});
std::string problem_of(const std::string& toml, const experiments::Selection& selection = {});  // as one text
std::string texts(const std::vector<Problem>& problems);

// Loads a valid file. Fails the test if the file has a problem.
experiments::Experiment loaded(const std::string& toml, const experiments::Selection& selection = {});

using Labels = std::vector<std::string>;
Labels labels(const experiments::Experiment& experiment);

// A file and its errors, one per line: the place and the first words, as in "5:10: epochs must be … but is 0".
// "…" stands for any text.
struct Wrong {
  std::string toml;
  std::string errors;
};
void check_all(const std::vector<Wrong>& table);

}  // namespace trainyard::tests
