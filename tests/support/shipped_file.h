// Shipped experiments, changed for a test.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::e2e {

// The text with `to` at the first place of `from`, which must be there.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  REQUIRE_MESSAGE(place != std::string::npos, from);
  return text.replace(place, from.size(), to);
}

inline std::string shipped(const std::string& name) {
  return tests::read_text(TRAINYARD_SOURCE "/experiments/" + name);
}

// The hybrid study with one epoch of 64 samples, one seed and a tenth of the width. Writes the published numbers, which
// it names, into the folder.
inline std::string short_hybrid(const Scratch& scratch) {
  scratch.write("brac-hybrid-results.toml", shipped("brac-hybrid-results.toml"));
  std::string file = replaced(shipped("brac-hybrid.toml"), "width   = 1.0", "width = 0.1");
  file = replaced(file, "epochs                 = 10", "train_samples = 64\nepochs = 1");
  return replaced(replaced(file, "count = 3", "count = 1"), "= 128 ", "= 32 ");
}

}  // namespace trainyard::e2e
