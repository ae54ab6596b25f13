#include "runner/trainer/resolved_run.h"

#include <utility>

#include "experiments/run/run_model.h"

namespace trainyard::runner {

ResolvedRun resolve(const experiments::Run& run) {
  models::Model model = experiments::model_of(run);
  const Task& task =
      model.own_loss ? task_with_own_loss(model.data_task, model.own_loss) : find_task(model.task);
  return {run,
          std::move(model),
          task,
          find_precision(run.precision),
          find_augmentation(run.augmentation),
          find_schedule(run.optimizer.schedule),
          find_sampling(run.sampler)};
}

}  // namespace trainyard::runner
