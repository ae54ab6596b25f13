#include "runner/device/out_of_memory.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <regex>
#include <string_view>

namespace trainyard::runner {

namespace {

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
    text += "it needs " + gibibytes(memory.taken_bytes + refused_bytes) + " or more (" +
            gibibytes(memory.taken_bytes) + " and then " + gibibytes(refused_bytes) + "), and there are " +
            gibibytes(memory.all_bytes);
  } else {
    text += gibibytes(refused_bytes) + " more could not be had";
  }
  return UserError(text, "take a smaller batch, gradient_accumulation, or more stages");
}

}  // namespace trainyard::runner
