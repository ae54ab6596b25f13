// GPUs as devices: which of the host's are used, with which cores, and what that makes of the circumstances.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "orchestrator/resources/devices.h"

namespace trainyard::orchestrator {

namespace {

// Part `index` of `parts` of the cores, or a single one where there are fewer cores than parts.
std::vector<int> part_of(const std::vector<int>& cores, std::size_t index, std::size_t parts) {
  if (cores.size() < parts) return {cores[index % cores.size()]};
  const std::size_t share = cores.size() / parts;
  const auto first = cores.begin() + static_cast<std::ptrdiff_t>(index * share);
  return {first, first + static_cast<std::ptrdiff_t>(share)};
}

[[noreturn]] void no_gpu(const std::string& cuda) {
  if (cuda.empty())
    throw UserError("`[machine] accelerator` is \"cuda\", but trainyard-runner was built for the CPU only",
                    "build it with a CUDA LibTorch (-DLibTorch_CUDA=ON), or leave accelerator out");
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  throw UserError("`[machine] accelerator` is \"cuda\", but trainyard-runner sees no GPU" +
                      (visible == nullptr ? "" : " with CUDA_VISIBLE_DEVICES=" + std::string(visible)),
                  "does nvidia-smi list one, with a driver for CUDA " + cuda + "?");
}

}  // namespace

std::vector<Device> choose_gpus(const std::vector<Gpu>& gpus, const std::vector<int>& cores,
                                std::optional<int> wanted) {
  const std::size_t count = wanted ? static_cast<std::size_t>(std::max(*wanted, 0)) : gpus.size();
  if (count == 0) throw UserError("`[machine] devices` is 0", "a run needs at least one device");
  if (count > gpus.size())
    throw UserError("`[machine] devices` is " + std::to_string(count) + ", but there " +
                        (gpus.size() == 1 ? "is " : "are ") + models::counted(gpus.size(), "GPU"),
                    "set devices to at most " + std::to_string(gpus.size()) + ", or accelerator to \"cpu\"");
  std::vector<Device> devices;
  for (std::size_t d = 0; d < count; ++d)
    devices.push_back(
        {"cuda:" + std::to_string(gpus[d].index), part_of(cores, d, count), gpus[d].name, gpus[d].uuid});
  return devices;
}

std::vector<Device> host_devices(const experiments::Machine& machine, const std::vector<Gpu>& gpus,
                                 const std::string& cuda, const std::vector<int>& cores) {
  if (machine.accelerator == "cuda" && gpus.empty()) no_gpu(cuda);
  const bool on_gpus = machine.accelerator != "cpu" && !gpus.empty();
  if (on_gpus) return choose_gpus(gpus, cores, machine.devices);
  divide_cores(cores, machine.devices);  // refuses more devices than cores
  return core_devices(cores);
}

experiments::Circumstances on_devices(experiments::Circumstances here, const std::vector<Device>& devices) {
  std::set<std::string> models;
  for (const Device& device : devices)
    if (!device.gpu.empty()) models.insert(device.gpu);
  if (models.empty()) {
    here.nccl = "";  // nothing on a CPU uses it
    return here;
  }
  here.processor = "";
  for (const std::string& model : models) here.processor += (here.processor.empty() ? "" : ", ") + model;
  return here;
}

}  // namespace trainyard::orchestrator
