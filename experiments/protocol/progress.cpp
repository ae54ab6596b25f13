#include "experiments/protocol/progress.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "experiments/protocol/crc32c.h"

namespace trainyard::experiments {

namespace {

constexpr std::size_t slot_size = 64;
constexpr std::size_t checksum_offset = 60;
constexpr std::string_view magic = "TYP1";
constexpr std::uint64_t interval = 200'000'000;  // nanoseconds
using Bytes = std::array<char, slot_size>;

std::uint64_t monotonic_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();  // CLOCK_MONOTONIC
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <typename Integer>
void put(Bytes& bytes, std::size_t offset, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes.at(offset + i) = static_cast<char>(value >> (8 * i));
}

template <typename Integer>
Integer get(const Bytes& bytes, std::size_t offset) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<Integer>(static_cast<unsigned char>(bytes.at(offset + i))) << (8 * i);
  return value;
}

std::uint32_t checksum(const Bytes& bytes) {
  return crc32c({bytes.data(), checksum_offset});
}

Bytes encoded(const Progress& progress) {
  Bytes bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  put(bytes, 4, static_cast<std::uint32_t>(progress.phase));
  put(bytes, 8, progress.epoch);
  put(bytes, 12, progress.epochs);
  put(bytes, 16, progress.step);
  put(bytes, 24, progress.steps);
  put(bytes, 32, std::bit_cast<std::uint64_t>(progress.loss));
  put(bytes, 40, std::bit_cast<std::uint64_t>(progress.accuracy));
  put(bytes, 48, progress.stamp);
  put(bytes, checksum_offset, checksum(bytes));
  return bytes;
}

std::optional<Progress> decoded(const Bytes& bytes) {
  const auto phase = get<std::uint32_t>(bytes, 4);
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return std::nullopt;
  if (get<std::uint32_t>(bytes, checksum_offset) != checksum(bytes)) return std::nullopt;
  if (phase > static_cast<std::uint32_t>(Phase::probe)) return std::nullopt;
  return Progress{.phase = static_cast<Phase>(phase),
                  .epoch = get<std::uint32_t>(bytes, 8),
                  .epochs = get<std::uint32_t>(bytes, 12),
                  .step = get<std::uint64_t>(bytes, 16),
                  .steps = get<std::uint64_t>(bytes, 24),
                  .loss = std::bit_cast<double>(get<std::uint64_t>(bytes, 32)),
                  .accuracy = std::bit_cast<double>(get<std::uint64_t>(bytes, 40)),
                  .stamp = get<std::uint64_t>(bytes, 48)};
}

}  // namespace

ProgressWriter::ProgressWriter(const std::filesystem::path& file)
    : fd_(FileDescriptor::open(file, O_WRONLY | O_CREAT | O_NOFOLLOW)) {}

bool ProgressWriter::due() const {
  return last_ == 0 || monotonic_nanoseconds() - last_ >= interval;
}

void ProgressWriter::write(Progress progress) {
  progress.stamp = last_ = monotonic_nanoseconds();
  const Bytes bytes = encoded(progress);
  if (fd_ && ::pwrite(fd_.get(), bytes.data(), bytes.size(), 0) < 0) return;  // errors are ignored
}

std::optional<Progress> read_progress(const std::filesystem::path& file) {
  const auto fd = FileDescriptor::open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  Bytes bytes{};
  if (!fd || ::pread(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(slot_size))
    return std::nullopt;
  return decoded(bytes);
}

}  // namespace trainyard::experiments
