// Ranks as threads of the test, connected as those of one host, through a store in memory; and small data
// sets to train on.
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

// Runs `rank` once for each of `ranks`, all at the same time; the first exception of any is thrown again.
void run_ranks(int ranks, const std::function<void(Communicator&)>& rank);

// The same for the ranks of a mesh, who talk by `communicator` and sit where `seat` says.
void run_mesh(const Mesh& mesh, const std::function<void(Connections&)>& rank,
              const std::string& communicator = "auto",
              const std::function<DeviceAssignment(int rank)>& seat = {});

// Trains `launch` as trainyard-runner would, one thread a rank; `prepare` may change how a rank is connected.
void train_launched(const experiments::Launch& launch, const std::function<void(Connections&)>& prepare = {});

// `samples` images of random pixels and labels, a pure function of its arguments.
models::Images random_images(const models::ImageShape& shape, std::int64_t samples,
                             std::int64_t classes = 10);

ImageDataset tensors_of(const models::Images& images, at::ScalarType dtype, bool channels_last);

// A run of `model` with the catalogue's defaults, `replicas` of it.
experiments::Run run_of(const std::string& model, std::int64_t replicas);

// The value of every parameter, in float64.
std::vector<at::Tensor> values_of(const Trainer& trainer);

double euclidean_norm(const at::Tensor& tensor);
double largest(const at::Tensor& tensor);  // absolute value

}  // namespace trainyard::runner::testing
