// Where a rank sits: the device that it computes on, as the launch names it or as the launcher gave it.
#pragma once

#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "experiments/protocol/launch.h"
#include "runner/device/environment.h"

namespace trainyard::runner {

struct Seat {
  at::Device device = at::Device(at::DeviceType::CPU);
  std::string name = "cpu";  // "cuda:1"; where the launch has one, its name there
  std::string gpu = {};      // what tells it from the GPUs of all ranks on all hosts; empty: it is none
};

// Of this rank. UserError where there is no such device.
Seat take_seat(const experiments::Launch& launch, const Environment& environment);

// Where the launch leaves it to the rank which GPU it was given, puts that one's name there, for all that
// reads it.
void name_device(experiments::Launch& launch, const Environment& environment);

// Slurm may show each task its own GPUs alone, or all tasks of a host the same ones: so a rank takes that of
// its local rank, counted round those that it sees. UserError where it sees none.
std::string visible_gpu(int local_rank, std::optional<int> visible_gpus);

}  // namespace trainyard::runner
