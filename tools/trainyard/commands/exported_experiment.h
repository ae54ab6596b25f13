// The experiment file of a network that `trainyard export` has written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::tools {

struct ExportedExperiment {
  std::filesystem::path network;  // the .pt2 file
  std::vector<std::string> strategies{"single", "ddp", "pipeline"};
  int seeds = 5;
  std::string dataset;    // empty: one whose samples have the shape of the network's input
  bool per_seed = false;  // there are weights per seed
};

// The whole file. Keys follow from the inputs of the network. UserError if the network cannot be read.
std::string text_of(const ExportedExperiment& experiment);

}  // namespace trainyard::tools
