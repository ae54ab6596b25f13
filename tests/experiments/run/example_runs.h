// Example runs for tests of runs and run keys.
#pragma once

#include "experiments/run/run.h"

namespace trainyard::experiments {

inline Run mlp_single() {
  Run run;
  run.model = "mlp";
  run.hyperparameters = {{"hidden", std::vector<std::int64_t>{250, 100}}};
  run.data.dataset = "mnist";
  run.data.source = "mnist";
  run.data.folder = "/data/mnist";
  run.data.fingerprint = "f00d";
  run.seed = 3;
  run.axes = {{"model", std::string("mlp")}, {"strategy", std::string("single")}, {"seed", std::int64_t{3}}};
  return run;
}

inline Run cnn_ddp() {
  Run run;
  run.model = "cnn";
  run.hyperparameters = {{"hidden", std::vector<std::int64_t>{128}},
                         {"channels", std::vector<std::int64_t>{16, 32}}};
  run.data = {.dataset = "mnist",
              .source = "synthetic-digits",
              .folder = {},
              .fingerprint = "c0ffee",
              .split_seed = 18446744073709551615u,
              .split = {0.6, 0.2, 0.2},
              .train_samples = 2000,
              .input = {}};
  run.strategy = {.name = "ddp", .kind = "ddp", .replicas = 2, .stages = 1};
  run.optimizer = {
      .kind = "adam", .learning_rate = 0.001, .momentum = 0, .weight_decay = 1e-4, .schedule = "constant"};
  run.epochs = 4;
  run.global_batch = 64;
  run.threads = 2;
  run.axes = {{"model", std::string("cnn")},
              {"batch", std::int64_t{64}},
              {"weight_decay", 1e-4},
              {"optimizer", std::string("adam")},
              {"hidden", std::vector<std::int64_t>{128}}};
  return run;
}

inline Run vgg11_hybrid() {
  Run run = mlp_single();
  run.model = "vgg11";
  run.hyperparameters = {{"head", std::string("compact")}};
  run.data.dataset = run.data.source = "cifar10";
  run.data.fingerprint = "feed";
  run.data.input = {.image = {.channels = 3, .height = 32, .width = 32}, .classes = 10};
  run.strategy = {.name = "hybrid",
                  .kind = "mp-ddp",
                  .replicas = 2,
                  .stages = 3,
                  .schedule = "1f1b",
                  .micro_batches = 4,
                  .boundaries = {7, 21}};
  run.optimizer = {.kind = "adamw",
                   .learning_rate = 0.001,
                   .momentum = 0,
                   .weight_decay = 0.01,
                   .schedule = "step",
                   .schedule_epochs = 4,
                   .schedule_factor = 0.5,
                   .clip_norm = 1};
  run.batch_size = 64;
  run.batch_per = "replica";
  run.global_batch = 128;
  run.gradient_accumulation = 2;
  run.sampler = "distributed";
  run.learning_rate_scaling = "linear";
  run.augmentation = "flip-crop";
  run.batch_norm = "sync";
  run.save = "best";
  run.checkpoint = "epoch";
  return run;
}

}  // namespace trainyard::experiments
