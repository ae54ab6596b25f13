// Ranks as threads of a test, connected through a store in memory as on one host. And small data sets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/protocol/launch.h"
#include "experiments/run/run.h"
#include "runner/communicator/communicator.h"
#include "runner/data/image_dataset.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/trainer.h"

namespace trainyard::runner::testing {

// Runs `rank` once for each of `ranks`, all at the same time. Rethrows the first exception.
void run_ranks(int ranks, const std::function<void(Communicator&)>& rank);

// Runs `rank` for the ranks of a mesh, with `communicator` and the devices that `assignment` returns.
void run_mesh(const Mesh& mesh, const std::function<void(Connections&)>& rank,
              const std::string& communicator = "auto",
              const std::function<DeviceAssignment(int rank)>& assignment = {});

// Trains `launch` as trainyard-runner does, with one thread per rank. `prepare` may change the connections.
void train_launched(const experiments::Launch& launch, const std::function<void(Connections&)>& prepare = {});

// `samples` images with random pixels and labels. They depend only on the arguments.
models::Images random_images(const models::ImageShape& shape, std::int64_t samples,
                             std::int64_t classes = 10);

ImageDataset tensors_of(const models::Images& images, at::ScalarType dtype, bool channels_last);

// A run of `model` with the catalogue's defaults on `replicas` replicas.
experiments::Run run_of(const std::string& model, std::int64_t replicas);

// The values of all parameters in float64.
std::vector<at::Tensor> values_of(const Trainer& trainer);

double euclidean_norm(const at::Tensor& tensor);
double largest(const at::Tensor& tensor);  // largest absolute value

}  // namespace trainyard::runner::testing
