#include "runner/device/device.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <regex>
#include <string_view>

#include <ATen/ATen.h>

#include "base/host.h"
#include "runner/device/gpu.h"

namespace trainyard::runner {

namespace {

constexpr std::string_view gpu_prefix = "cuda:";

// The number after "cuda:". Empty if the rest is not a number.
std::optional<int> index_in(std::string_view name) {
  const std::string_view digits = name.substr(gpu_prefix.size());
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0) return std::nullopt;
  return index;
}

std::string gpu_advice(int count) {
  if (count == 0) return "no GPU is visible (check nvidia-smi and CUDA_VISIBLE_DEVICES)";
  if (count == 1) return "use cuda:0, the only GPU";
  return "use cuda:0 to cuda:" + std::to_string(count - 1);
}

// The default is the CPU.
std::string name_in(const experiments::Launch& launch, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return index < launch.devices.size() ? launch.devices[index] : "cpu";
}

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array units{Unit{"bytes", 1}, Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
                           Unit{"TiB", 0x1p40}};

std::string gibibytes(std::int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB", static_cast<double>(bytes) * 0x1p-30);
  return text.data();
}

std::string batch_text(const experiments::Run& run) {
  std::string text = "a batch of " + std::to_string(run.global_batch);
  const std::int64_t replicas = run.strategy.sharing_replicas();
  const std::int64_t parts = replicas * run.gradient_accumulation * run.strategy.micro_batches;
  if (parts > 1) text += " (" + std::to_string((run.global_batch + parts - 1) / parts) + " at a time)";
  return text;
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
    throw UserError("\"" + name + "\" is not a device", "use for example cpu:0-1, cuda:0 or cuda:1");
  if (!gpu_count)
    throw UserError("this trainyard-runner has no CUDA and cannot train on " + name,
                    "train on \"cpu\", or build it with a CUDA build of torch (docs/gpus.md)");
  if (*index >= *gpu_count) throw UserError("there is no GPU " + name, gpu_advice(*gpu_count));
  return {at::DeviceType::CUDA, static_cast<at::DeviceIndex>(*index)};
}

void set_device(at::Device device) {
  if (device.is_cuda()) use_gpu(device.index());
}

void synchronize(at::Device device) {
  if (device.is_cuda()) synchronize_gpu(device.index());
}

DeviceMemory device_memory(at::Device device) {
  return device.is_cuda() ? gpu_memory(device.index()) : DeviceMemory{};
}

void reset_peak_device_bytes(at::Device device) {
  if (device.is_cuda()) reset_gpu_peak(device.index());
}

at::Tensor fetched(const at::Tensor& rows, const at::Tensor& indices, at::Device device) {
  at::Tensor gathered =
      at::empty({indices.size(0), rows.size(1)}, rows.options().pinned_memory(rows.is_pinned()));
  at::index_select_out(gathered, rows, 0, indices);
  return device.is_cuda() ? copied_beside(gathered, device.index()) : gathered.to(device);
}

at::Device device_named(const std::string& name) {
  return device_named(name, name.starts_with(gpu_prefix) ? gpu_count() : std::nullopt);
}

std::string visible_gpu(int local_rank, std::optional<int> visible_gpus) {
  if (visible_gpus.value_or(0) == 0)
    throw UserError("this rank must train on a GPU, but no GPU is visible",
                    "set gpus_per_task in [machine] and use a CUDA build of trainyard-runner");
  return "cuda:" + std::to_string(local_rank % *visible_gpus);
}

void name_device(experiments::Launch& launch, const Environment& environment) {
  const auto index = static_cast<std::size_t>(environment.rank);
  if (index < launch.devices.size() && launch.devices[index] == experiments::gpu_of_task(index))
    launch.devices[index] = visible_gpu(environment.local_rank, gpu_count());
}

DeviceAssignment resolve_device(const experiments::Launch& launch, const Environment& environment) {
  const std::string name = name_in(launch, environment.rank);
  const at::Device device = device_named(name);
  return {device, name, device.is_cuda() ? host_name() + " " + gpu_facts(device.index()).uuid : ""};
}

std::optional<std::int64_t> bytes_refused(const std::string& error) {
  static const std::regex pattern("[Tt]ried to allocate ([0-9]+(?:\\.[0-9]+)?) ?([A-Za-z]+)");
  std::smatch found;
  if (!std::regex_search(error, found, pattern)) return std::nullopt;
  for (const Unit& unit : units)
    if (found[2].str() == unit.name) return std::llround(std::stod(found[1]) * unit.bytes);
  return std::nullopt;
}

UserError out_of_memory(const experiments::Run& run, const std::string& device, std::int64_t refused_bytes,
                        const DeviceMemory& memory) {
  std::string text =
      run.model + " with " + batch_text(run) + " does not fit into the memory of " + device + ": ";
  if (memory.all_bytes > 0) {
    text += "it needs at least " + gibibytes(memory.peak_bytes + refused_bytes) + " (" +
            gibibytes(memory.peak_bytes) + " in use and " + gibibytes(refused_bytes) +
            " more), but the device has " + gibibytes(memory.all_bytes);
  } else {
    text += "cannot allocate another " + gibibytes(refused_bytes);
  }
  return UserError(text, "use a smaller batch, gradient_accumulation or more stages");
}

}  // namespace trainyard::runner
