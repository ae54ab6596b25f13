#include "runner/device/device.h"

#include <charconv>
#include <string_view>

#include <ATen/ATen.h>

#include "base/error.h"
#include "runner/device/gpu.h"

namespace trainyard::runner {

namespace {

constexpr std::string_view gpu_prefix = "cuda:";

// The number behind "cuda:"; nothing where there is none, or more than a number.
std::optional<int> index_in(std::string_view name) {
  const std::string_view digits = name.substr(gpu_prefix.size());
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0) return std::nullopt;
  return index;
}

std::string those_there(int count) {
  if (count == 0) return "none is there (nvidia-smi and CUDA_VISIBLE_DEVICES say why)";
  if (count == 1) return "there is only cuda:0";
  return "there are cuda:0 to cuda:" + std::to_string(count - 1);
}

}  // namespace

std::string gpu_uuid(const std::string& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || (i >= 4 && i <= 10 && i % 2 == 0)) text += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

std::vector<GpuFacts> gpus() {
  std::vector<GpuFacts> all;
  for (int i = 0; i < gpu_count().value_or(0); ++i) all.push_back(gpu_facts(i));
  return all;
}

nlohmann::ordered_json to_json(const std::vector<GpuFacts>& gpus) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const GpuFacts& gpu : gpus)
    all.push_back(
        {{"index", gpu.index}, {"name", gpu.name}, {"memory_bytes", gpu.memory_bytes}, {"uuid", gpu.uuid}});
  return all;
}

at::Device device_named(const std::string& name, std::optional<int> gpu_count) {
  if (name == "cpu" || name.starts_with("cpu:")) return {at::DeviceType::CPU};
  const auto index = name.starts_with(gpu_prefix) ? index_in(name) : std::nullopt;
  if (!index)
    throw UserError("\"" + name + "\" is no device", "those are cpu:0-1 and the like, cuda:0, cuda:1 …");
  if (!gpu_count)
    throw UserError("this trainyard-runner has no CUDA, and cannot train on " + name,
                    "train on \"cpu\", or build it with a CUDA build of torch (README, «On GPUs»)");
  if (*index >= *gpu_count) throw UserError("there is no GPU " + name, those_there(*gpu_count));
  return {at::DeviceType::CUDA, static_cast<at::DeviceIndex>(*index)};
}

void settle_on(at::Device device) {
  if (device.is_cuda()) use_gpu(device.index());
}

void synchronize(at::Device device) {
  if (device.is_cuda()) synchronize_gpu(device.index());
}

std::int64_t free_device_bytes(at::Device device) {
  return device.is_cuda() ? gpu_memory(device.index()).free_bytes : 0;
}

DeviceMemory device_memory(at::Device device) {
  if (!device.is_cuda()) return {};
  const GpuMemory memory = gpu_memory(device.index());
  return {memory.peak_bytes, memory.all_bytes};
}

std::optional<std::int64_t> peak_device_bytes(at::Device device) {
  if (!device.is_cuda()) return std::nullopt;
  return gpu_memory(device.index()).peak_bytes;
}

void reset_peak_device_bytes(at::Device device) {
  if (device.is_cuda()) reset_gpu_peak(device.index());
}

at::Tensor fetched(const at::Tensor& rows, const at::Tensor& places, at::Device device) {
  at::Tensor gathered =
      at::empty({places.size(0), rows.size(1)}, rows.options().pinned_memory(rows.is_pinned()));
  at::index_select_out(gathered, rows, 0, places);
  return device.is_cuda() ? copied_beside(gathered, device.index()) : gathered.to(device);
}

at::Device device_named(const std::string& name) {
  return device_named(name, name.starts_with(gpu_prefix) ? gpu_count() : std::nullopt);
}

}  // namespace trainyard::runner
