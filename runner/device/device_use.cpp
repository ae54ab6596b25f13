#include "runner/device/device_use.h"

#include <utility>

#include "runner/device/device.h"

namespace trainyard::runner {

namespace {

std::optional<GpuEnergy> counter_of(const at::Device& device) {
  if (!device.is_cuda()) return std::nullopt;
  for (const GpuFacts& gpu : gpus())
    if (gpu.index == device.index()) return GpuEnergy::of(gpu.uuid);
  return std::nullopt;
}

}  // namespace

DeviceMeter::DeviceMeter(const at::Device& device) : DeviceMeter(device, counter_of(device)) {}

DeviceMeter::DeviceMeter(const at::Device& device, std::optional<GpuEnergy> counter)
    : device_(device), counter_(std::move(counter)) {}

void DeviceMeter::training_begins() {
  energy_joules_.reset();
  reset_peak_device_bytes(device_);
  if (counter_) joules_before_ = counter_->joules();
}

void DeviceMeter::training_ends() {
  const std::optional<double> now = counter_ ? counter_->joules() : std::nullopt;
  if (now && joules_before_ && *now >= *joules_before_) energy_joules_ = *now - *joules_before_;
}

DeviceUse DeviceMeter::use() const {
  return {energy_joules_, energy_joules_ ? counter_->uuid() : "", peak_device_bytes(device_)};
}

}  // namespace trainyard::runner
