// The parity gate: before an arm is timed, two steps of it are held against the virtual mesh
// (runner/parity/reference_trainer.h), each from the same weights and on the same batch. It trains a copy, so
// the training that follows is the same, bit by bit, with and without it. `reports` makes the verdict BROKEN
// of what is found.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run.h"
#include "models/datasets/datasets.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/data/dataset.h"
#include "runner/trainer/mesh.h"

namespace trainyard::runner {

struct ProbedLayer {
  std::string path;                  // of a parameter: "2.weight"
  double gradient_norm = 0;          // L2, of the reduced gradient
  std::optional<double> difference;  // L2 of the difference from the virtual mesh's; replica 0 only
  std::string parameter_hash;        // after the step
};

struct ProbedStep {
  std::int64_t step = 0;                 // from 1
  double loss = 0;                       // mean over the global batch
  std::optional<double> reference_loss;  // the virtual mesh's; replica 0 only
  double gradient_norm = 0;              // L2, of all gradients of all stages
  std::vector<ProbedLayer> layers;       // of this rank's stage, in their order
};

inline constexpr std::int64_t probed_steps = 2;

struct ProbeLimit {
  double seconds = 3;             // that the gate may take …
  double part_of_the_run = 0.02;  // … or this part of the run, whichever is more
};

// Probes the first steps of epoch 1 of `run`, whose training data is `train`, and calls `done` after each. A
// step that would take longer than `limit` is left out; the first never is. Collective: all ranks of the mesh
// call it, and probe equally many steps. Returns their number.
std::int64_t probe_parity(const experiments::Run& run, const models::InputShape& input, const Dataset& train,
                          const Connections& ranks, const std::function<void(const ProbedStep&)>& done,
                          const ProbeLimit& limit = {});

// Replicas that start from different parameters train different models without anyone noticing: so they are
// compared.

// Returns where all ranks hold the same bits as rank 0; throws InternalError on every rank otherwise, naming
// the first layer that differs and how many ranks have it different.
void check_equal_parameters(const std::vector<networks::NamedParameter>& parameters,
                            Communicator& communicator);

// Hash of each parameter's values by name, 15 hexadecimal digits: recorded before the first step, so that
// arms which did not start alike are found.
std::map<std::string, std::string> parameter_hashes(const std::vector<networks::NamedParameter>& parameters);

}  // namespace trainyard::runner
