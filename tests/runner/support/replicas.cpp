#include "tests/runner/support/replicas.h"

#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "models/catalogue.h"
#include "runner/training/training.h"

namespace trainyard::runner::testing {

namespace {

constexpr std::chrono::seconds timeout{60};  // only for hangs

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& rank) {
  run_mesh({ranks, 1}, [&](const Connections& connections) { rank(*connections.replicas); });
}

void run_mesh(const Mesh& mesh, const std::function<void(Connections&)>& rank,
              const std::string& communicator, const std::function<DeviceAssignment(int rank)>& assignment) {
  at::set_num_threads(1);
  const Store store = c10::make_intrusive<c10d::HashStore>();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(mesh.world_size()));
  for (int r = 0; r < mesh.world_size(); ++r) {
    threads.emplace_back([&, r] {
      std::optional<Connections>
          connections;  // closed after an exception is stored, because closing makes others fail
      try {
        connections = connect(store, mesh, r, true, timeout, communicator,
                              assignment ? assignment(r) : DeviceAssignment());
        rank(*connections);
        connections->barrier();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

void train_launched(const experiments::Launch& launch, const std::function<void(Connections&)>& prepare) {
  const experiments::Strategy& strategy = launch.run.strategy;
  const Mesh mesh{static_cast<int>(strategy.replicas), static_cast<int>(strategy.stages),
                  static_cast<int>(strategy.servers), static_cast<int>(strategy.tensor)};
  run_mesh(
      mesh,
      [&](Connections& ranks) {
        if (prepare) prepare(ranks);
        const int worker =
            (ranks.position.replica * mesh.stages + ranks.position.stage) * mesh.tensor + ranks.position.part;
        RankRecords records(launch, ranks.with_servers ? ranks.with_servers->rank() : worker);
        train(launch, ranks, 1, records);
      },
      launch.circumstances.communicator);
}

models::Images random_images(const models::ImageShape& shape, std::int64_t samples, std::int64_t classes) {
  std::mt19937 numbers(static_cast<unsigned>(samples * 1000 + shape.pixels()));
  models::Images images{.shape = shape, .pixels = {}, .labels = {}};
  for (std::int64_t i = 0; i < samples * shape.pixels(); ++i) {
    images.pixels.push_back(static_cast<std::uint8_t>(numbers() % 256));
  }
  for (std::int64_t i = 0; i < samples; ++i) {
    images.labels.push_back(static_cast<std::uint8_t>(numbers() % static_cast<unsigned>(classes)));
  }
  return images;
}

ImageDataset tensors_of(const models::Images& images, at::ScalarType dtype, bool channels_last) {
  return {images, channel_statistics(images), Target::label, dtype, channels_last};
}

experiments::Run run_of(const std::string& model, std::int64_t replicas) {
  experiments::Run run;
  run.model = model;
  for (const Parameter& parameter : models::find_model(model).hyperparameters) {
    run.hyperparameters[parameter.name] = parameter.fallback.value();
  }
  run.strategy.name = run.strategy.kind = replicas == 1 ? "single" : "ddp";
  run.strategy.replicas = replicas;
  return run;
}

std::vector<at::Tensor> values_of(const Trainer& trainer) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : trainer.network().parameters()) {
    values.push_back(parameter.value.detach().to(at::kDouble).clone());
  }
  return values;
}

double euclidean_norm(const at::Tensor& tensor) {
  return tensor.norm().item<double>();
}

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item<double>();
}

}  // namespace trainyard::runner::testing
