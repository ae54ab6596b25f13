// Where a rank sits: the device that it computes on, as the launch names it or as the launcher gave it.
#pragma once

#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "experiments/launch.h"
#include "runner/environment.h"

namespace trainyard::runner {

struct Seat {
  at::Device device = at::Device(at::DeviceType::CPU);
  std::string name = "cpu";  // "cuda:1"; where the launch has one, its name there
  std::string gpu = {};      // what tells it from the GPUs of all ranks on all hosts; empty: it is none
};

// Of this rank. UserError where there is no such device.
Seat take_seat(const experiments::Launch& launch, const Environment& environment);

// Puts the GPU that this rank was given in the place of a "cuda" of the launch, for all that reads it.
void name_device(experiments::Launch& launch, const Environment& environment);

// "cuda" says that a cluster's launcher gave the rank a GPU. Slurm may show each task its own alone, or all
// tasks of a host the same ones, so the rank takes the one of its local rank, counted round those that it
// sees. UserError where it sees none. Other names stay as they are.
std::string device_of_task(const std::string& name, int local_rank, std::optional<int> visible_gpus);

}  // namespace trainyard::runner
