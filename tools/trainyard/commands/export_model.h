// `trainyard export FILE.py:FUNCTION`: a network of PyTorch as a file that trainyard trains without Python.
// The work is done by tools/trainyard/export_model, which is embedded into the program.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::tools {

struct ModelExportOptions {
  std::string function;  // "net.py:build"
  std::optional<std::filesystem::path> out;
  int batch = 0;  // samples of the example; 0: as many as the function gives
  std::string task;
  int seeds = 0;       // whose first weights are written too
  std::string python;  // empty: python3, or the one that trainyard was built with if python3 has no torch
  bool in_double = false;
  bool verbose = false;
};

// Whether the argument names a Python file: "net.py", "net.py:build".
bool names_python_file(std::string_view argument);

// Run the user's Python and write the file. The exit code is `wrong_usage` if the user must change something.
// Python has then printed what. UserError if Python does not start or the options are wrong.
int export_network(const ModelExportOptions& options);
// The same, and print an experiment file for the network.
int export_model(const ModelExportOptions& options);

// The Python sources by the names of their files.
const std::map<std::string, std::string_view>& export_model_sources();

// Experiment files that `trainyard run` writes: of a network that `trainyard export` has written, and of a script.
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
