#include "runner/device/seat.h"

#include "base/error.h"
#include "base/host_name.h"
#include "runner/device/device.h"
#include "runner/device/gpu.h"
#include "runner/device/process.h"

namespace trainyard::runner {

namespace {

// Cores are the rank's where no device is named.
std::string name_in(const experiments::Launch& launch, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return index < launch.devices.size() ? launch.devices[index] : "cpu";
}

}  // namespace

std::string visible_gpu(int local_rank, std::optional<int> visible_gpus) {
  if (visible_gpus.value_or(0) == 0)
    throw UserError("this rank is to train on a GPU, and sees none",
                    "set gpus_per_task in [machine], and start it with a CUDA build of trainyard-runner");
  return "cuda:" + std::to_string(local_rank % *visible_gpus);
}

void name_device(experiments::Launch& launch, const Environment& environment) {
  const auto index = static_cast<std::size_t>(environment.rank);
  if (index < launch.devices.size() && launch.devices[index] == experiments::gpu_of_task(index))
    launch.devices[index] = visible_gpu(environment.local_rank, gpu_count());
}

Seat take_seat(const experiments::Launch& launch, const Environment& environment) {
  const std::string name = name_in(launch, environment.rank);
  const at::Device device = device_named(name);
  return {device, name, device.is_cuda() ? models::host_name() + " " + gpu_facts(device.index()).uuid : ""};
}

}  // namespace trainyard::runner
