#include "runner/device/device_use.h"

#include <utility>

#include <dlfcn.h>

#include "runner/device/device.h"

namespace trainyard::runner {

namespace {

std::optional<GpuEnergy> counter_of(const at::Device& device) {
  if (!device.is_cuda()) return std::nullopt;
  for (const GpuFacts& gpu : gpus())
    if (gpu.index == device.index()) return GpuEnergy::of(gpu.uuid);
  return std::nullopt;
}

constexpr int success = 0;  // nvmlReturn_t: NVML_SUCCESS

// Types of NVML's functions, from nvml.h.
using Init = int (*)();
using Shutdown = int (*)();
using HandleByUuid = int (*)(const char* uuid, void** device);
using TotalEnergy = int (*)(void* device, unsigned long long* millijoules);

}  // namespace

DeviceMeter::DeviceMeter(const at::Device& device) : DeviceMeter(device, counter_of(device)) {}

DeviceMeter::DeviceMeter(const at::Device& device, std::optional<GpuEnergy> counter, double shortest)
    : device_(device), counter_(std::move(counter)), shortest_(shortest) {}

void DeviceMeter::training_begins() {
  energy_joules_.reset();
  reset_peak_device_bytes(device_);
  if (counter_) joules_before_ = counter_->joules();
  watch_.lap();
}

void DeviceMeter::training_ends() {
  const bool measurable = counter_ && watch_.lap() >= shortest_;
  const std::optional<double> now = measurable ? counter_->joules() : std::nullopt;
  if (now && joules_before_ && *now >= *joules_before_) energy_joules_ = *now - *joules_before_;
}

DeviceUse DeviceMeter::use() const {
  return {energy_joules_, energy_joules_ ? counter_->uuid() : "",
          device_.is_cuda() ? std::optional(device_memory(device_).peak_bytes) : std::nullopt};
}

class GpuEnergy::Nvml {
 public:
  static std::shared_ptr<const Nvml> open(const std::string& library) {
    auto nvml = std::make_shared<Nvml>(library);
    return nvml->started_ ? nvml : nullptr;
  }
  explicit Nvml(const std::string& library) : library_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    handle_by_uuid_ = reinterpret_cast<HandleByUuid>(::dlsym(library_, "nvmlDeviceGetHandleByUUID"));
    total_energy_ = reinterpret_cast<TotalEnergy>(::dlsym(library_, "nvmlDeviceGetTotalEnergyConsumption"));
    shutdown_ = reinterpret_cast<Shutdown>(::dlsym(library_, "nvmlShutdown"));
    const auto init = reinterpret_cast<Init>(::dlsym(library_, "nvmlInit_v2"));
    started_ = init != nullptr && handle_by_uuid_ != nullptr && total_energy_ != nullptr &&
               shutdown_ != nullptr && init() == success;
  }
  ~Nvml() {
    if (started_) shutdown_();
    if (library_ != nullptr) ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void* device(const std::string& uuid) const {
    void* device = nullptr;
    return handle_by_uuid_(uuid.c_str(), &device) == success ? device : nullptr;
  }
  std::optional<double> joules(void* device) const {
    unsigned long long millijoules = 0;
    if (total_energy_(device, &millijoules) != success) return std::nullopt;
    return static_cast<double>(millijoules) / 1000;
  }

 private:
  void* library_;
  HandleByUuid handle_by_uuid_ = nullptr;
  TotalEnergy total_energy_ = nullptr;
  Shutdown shutdown_ = nullptr;
  bool started_ = false;
};

GpuEnergy::GpuEnergy(std::shared_ptr<const Nvml> nvml, void* device, std::string uuid)
    : nvml_(std::move(nvml)), device_(device), uuid_(std::move(uuid)) {}

std::optional<GpuEnergy> GpuEnergy::of(const std::string& uuid, const std::string& library) {
  std::shared_ptr<const Nvml> nvml = Nvml::open(library);
  if (!nvml) return std::nullopt;
  void* device = nvml->device(uuid);
  if (device == nullptr || !nvml->joules(device)) return std::nullopt;
  return GpuEnergy(std::move(nvml), device, uuid);
}

std::optional<double> GpuEnergy::joules() const {
  return nvml_->joules(device_);
}

}  // namespace trainyard::runner
