// The model of a run: a model of trainyard, or a network that PyTorch exported.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/run/run.h"
#include "models/catalogue.h"
#include "models/graph.h"
#include "models/tensor_split.h"

namespace trainyard::experiments {

// What an experiment file says of an exported network.
struct ExportedLine {
  std::string name, title, task;
  std::filesystem::path path;
  std::string initial = "exported";  // first weights: those of the file, "seed" or "program"
};

// The model of an exported network. Its data sets are those whose samples have the shape of its inputs.
// - Its graph is that of the file. UserError if the data has another shape.
// - UserError if the file cannot be read, or its inputs and outputs are not those of the task. Also if weights
//   shall be drawn, but the file does not say how.
models::Model exported_model(const ExportedLine& line);

// UserError if parameters are not float32: `precision` says in which type a run trains.
void require_float32(const ExportedLine& line);

// The SHA-256 of the first weights that `trainyard export --seeds` wrote for the seed, beside the file of the network.
// UserError if there are none, or if they do not fit the network.
std::string seed_weights(const models::Model& exported, std::uint64_t seed);

// The SHA-256 of the file `run.initial`. UserError if its names and sizes are not those of the network. The network of a
// foreign program is not known.
std::string checked_weights(const Run& run);

// The model with the first weights of the run, if they are those of a file.
// UserError if there is no such model, or if a file of an exported network has changed or cannot be read.
models::Model model_of(const Run& run);

// The name of the run's task. It reads no file.
std::string task_name(const Run& run);

// The graph of the run's model, without first weights of the seed. UserError if the model does not accept this input.
models::Graph graph_of(const Run& run, const models::InputShape& input);

// The layers that the run splits over the parts of its strategy.
models::TensorSplit tensor_split_of(const Run& run);

// The layers that `tensor_split` says: those of the file, those with its dimensions, or the cheapest ones. UserError if they
// cannot be split.
std::vector<std::int64_t> layers_to_split(const Run& run, const models::Graph& graph);

}  // namespace trainyard::experiments
