// Parity check: before an arm is timed, two of its steps are compared with the reference trainer
// (runner/parity/reference_trainer.h).
// - Each step of both starts from the same weights and uses the same batch.
// - The check trains a copy. So it does not change the training that follows, bit by bit.
// - `reports` derives the verdict BROKEN from its records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/datasets/datasets.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/data/dataset.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/resolved_run.h"

namespace trainyard::runner {

struct ProbedLayer {
  std::string path;                  // of a parameter: "2.weight"
  double gradient_norm = 0;          // L2 norm of the reduced gradient
  std::optional<double> difference;  // L2 norm of the difference from the reference; replica 0 only
  std::string parameter_hash;        // after the step
};

struct ProbedStep {
  std::int64_t step = 0;                 // from 1
  double loss = 0;                       // mean over the global batch
  std::optional<double> reference_loss;  // of the reference trainer; replica 0 only
  double gradient_norm = 0;              // L2 norm of all gradients of all stages
  std::vector<ProbedLayer> layers;       // of this rank's stage, in their order
};

inline constexpr std::int64_t probed_steps = 2;

// Time limit of the check: the larger one of both.
struct ProbeLimit {
  double seconds = 3;
  double part_of_the_run = 0.02;  // fraction of the run's training time
};

// Checks the first steps of epoch 1 of the run with the training data `train`, and calls `done` after each
// step. Returns the number of steps.
// - A step that would exceed `limit` is skipped, but never the first step.
// - Collective over all ranks of the mesh. All check the same number of steps.
std::int64_t probe_parity(const ResolvedRun& resolved, const models::InputShape& input, const Dataset& train,
                          const Connections& ranks, const std::function<void(const ProbedStep&)>& done,
                          const ProbeLimit& limit = {});

// Checks that all ranks start with the same parameters as rank 0, bit by bit. Otherwise replicas would
// silently train different models. InternalError on every rank, with the first parameter that differs and the
// number of ranks on which it does.
void check_equal_parameters(const std::vector<networks::NamedParameter>& parameters,
                            Communicator& communicator);

// Hash of each parameter's values by name, 15 hexadecimal digits. It is recorded before the first step, to
// find arms with different initial weights.
std::map<std::string, std::string> parameter_hashes(const std::vector<networks::NamedParameter>& parameters);

}  // namespace trainyard::runner
