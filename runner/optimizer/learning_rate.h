// The learning rate over a run. It changes between epochs only, as PyTorch's schedulers do where they are
// stepped once an epoch.
#pragma once

#include <cstdint>

#include "experiments/run/run.h"

namespace trainyard::runner {

// Of all steps of `epoch` (from 1), starting from the run's effective learning rate:
// constant: that;
// step: times schedule_factor after every schedule_epochs epochs (torch.optim.lr_scheduler.StepLR);
// cosine: from that towards 0, which the epoch after the last would have (CosineAnnealingLR with T_max =
// epochs, η_min = 0; Loshchilov and Hutter 2017, equation 5, without restarts). UserError for an unknown
// schedule, with those that exist.
double learning_rate_at(const experiments::Run& run, std::int64_t epoch);

}  // namespace trainyard::runner
