#include "tests/runner/support/small_runs.h"

#include <vector>

#include "experiments/protocol/checkpoint.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::testing {

experiments::Run small_vgg11() {
  experiments::Run run = run_of("vgg11", 1);
  run.hyperparameters["width"] = std::int64_t{4};
  run.hyperparameters["head"] = std::string("paper");
  run.hyperparameters["head_width"] = std::int64_t{12};
  run.hyperparameters["dropout"] = 0.3;
  run.data.dataset = run.data.source = "synthetic-color-digits";
  run.augmentation = "flip-crop";
  run.optimizer = {.kind = "sgd", .learning_rate = 0.02, .momentum = 0.9, .schedule = "cosine"};
  return run;
}

experiments::Run small_seq2seq() {
  experiments::Run run = run_of("seq2seq", 1);
  run.hyperparameters["embedding"] = std::int64_t{6};
  run.hyperparameters["hidden"] = std::int64_t{7};
  run.hyperparameters["dropout"] = 0.5;
  run.data.dataset = run.data.source = "synthetic-phrases";
  run.optimizer = {.kind = "adam", .learning_rate = 0.01, .momentum = 0, .clip_norm = 1};
  return run;
}

experiments::Run small_mlp() {
  experiments::Run run = run_of("mlp", 1);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{11, 9};
  run.data.dataset = run.data.source = "synthetic-digits";
  run.optimizer = {.kind = "adamw", .learning_rate = 0.01, .momentum = 0, .weight_decay = 0.1};
  run.sampler = "distributed";
  return run;
}

experiments::Run shaped(experiments::Run run, const Shape& shape) {
  run.strategy.name = run.strategy.kind = shape.kind;
  run.strategy.replicas = shape.replicas;
  run.strategy.stages = shape.stages;
  run.strategy.schedule = shape.schedule;
  run.strategy.micro_batches = shape.micro_batches;
  run.strategy.servers = shape.servers;
  if (shape.stages == 2) run.strategy.boundaries = {run.model == "vgg11" ? 9 : 2};
  run.strategy.tensor = shape.tensor;
  if (shape.tensor > 1)
    run.strategy.tensor_split = run.model == "mlp"     ? std::vector<std::int64_t>{1, 3}
                                : run.model == "vgg11" ? std::vector<std::int64_t>{0, 4, 8, 11, 25, 30, 33}
                                                       : std::vector<std::int64_t>{0, 5, 10};
  run.data.train_samples = 26;
  run.global_batch = run.batch_size = 12;  // two samples in the last batch, so one of three replicas has none
  run.epochs = epochs_of_small_runs;
  run.seed = 5;
  run.threads = 1;
  return run;
}

experiments::Launch launch_in(const std::filesystem::path& folder, const experiments::Run& run,
                              const std::string& checkpoint) {
  experiments::Launch launch;
  launch.run = run;
  launch.run.checkpoint = checkpoint;
  launch.key = "0123456789ab";
  launch.records = folder / "attempt-1";
  launch.checkpoints = folder / experiments::checkpoints_folder_name;
  launch.experiment = "test";
  std::filesystem::create_directories(launch.records);
  std::filesystem::create_directories(launch.checkpoints);
  return launch;
}

experiments::Launch after(experiments::Launch launch, std::int64_t epoch) {
  launch.resumes = experiments::Resumes{launch.attempt, epoch};
  ++launch.attempt;
  launch.records = launch.records.parent_path() / ("attempt-" + std::to_string(launch.attempt));
  std::filesystem::create_directories(launch.records);
  return launch;
}

}  // namespace trainyard::runner::testing
