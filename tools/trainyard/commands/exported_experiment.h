// Experiment files that `trainyard run` writes: of a network that `trainyard export` has written, and of a script.
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

// The experiment file of a PyTorch script that is recorded (docs/python.md).
struct ScriptExperiment {
  std::string script;  // "train.py"
  std::string python = "python3";
  std::vector<std::string> arguments;  // placeholders as in `command`
  std::vector<std::string> strategies{"single", "ddp"};
  int replicas = 2;  // of ddp
  int seeds = 5;
  int epochs = 5;  // of run.epochs()
};

// UserError if a strategy is neither "single" nor "ddp".
std::string text_of(const ScriptExperiment& experiment);

}  // namespace trainyard::tools
