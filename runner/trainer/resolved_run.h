// A run with the rows that it names. Each name is looked up once, and the rows are passed on.
#pragma once

#include <optional>
#include <utility>

#include "experiments/run/run.h"
#include "models/catalogue.h"
#include "models/in_double.h"
#include "models/networks/network.h"
#include "runner/data/dataset.h"
#include "runner/data/sampler.h"
#include "runner/data/task.h"
#include "runner/device/precision.h"
#include "runner/optimizer/optimizer.h"

namespace trainyard::runner {

struct ResolvedRun {
  experiments::Run run;
  models::Model model;
  const Task& task;
  const Precision& precision;
  const Augmentation& augmentation;
  const LearningRateSchedule& schedule;
  Sampling sampling;

  // UserError if the model does not accept this input.
  models::Graph graph(const models::InputShape& input) const {
    models::Graph made = model.graph(run.hyperparameters, input);
    return precision.parameters == at::kDouble ? models::in_double(std::move(made)) : made;
  }
  double learning_rate_at(const StepPlace& place) const {
    return runner::learning_rate_at(schedule, run, place);
  }
};

// The network of the run, or one stage of it, with its first weights: those of the file `initial` if there is one.
// `part`: that of its split layers (models/tensor_split.h); empty: they are whole.
// UserError if that file has changed since the run was planned, cannot be read, or does not fit.
networks::Network first_network(const ResolvedRun& resolved, const models::InputShape& input,
                                const networks::Initialisation& start,
                                const std::optional<models::NodeRange>& stage = {},
                                std::optional<int> part = {});

// UserError for an unknown name, or if the file of an exported network has changed or cannot be read.
ResolvedRun resolve(const experiments::Run& run);

}  // namespace trainyard::runner
