#include "experiments/protocol/progress.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>

#include <fcntl.h>
#include <unistd.h>

#include "experiments/protocol/crc32c.h"

namespace trainyard::experiments {

namespace {

constexpr std::uint64_t interval = 200'000'000;  // nanoseconds

// The bytes of the file.
struct Slot {
  std::array<char, 4> magic;
  Phase phase;
  std::uint32_t epoch, epochs;
  std::uint64_t step, steps;
  double loss, accuracy;
  std::uint64_t stamp;
  std::uint32_t reserved, crc;
};
static_assert(sizeof(Slot) == 64 && std::endian::native == std::endian::little);

constexpr std::array<char, 4> magic{'T', 'Y', 'P', '1'};

std::uint64_t monotonic_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();  // CLOCK_MONOTONIC
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::uint32_t checksum(const Slot& slot) {
  return crc32c({reinterpret_cast<const char*>(&slot), offsetof(Slot, crc)});
}

}  // namespace

ProgressWriter::ProgressWriter(const std::filesystem::path& file)
    : fd_(FileDescriptor::open(file, O_WRONLY | O_CREAT | O_NOFOLLOW)) {}

bool ProgressWriter::due() const {
  return last_ == 0 || monotonic_nanoseconds() - last_ >= interval;
}

void ProgressWriter::write(Progress progress) {
  progress.stamp = last_ = monotonic_nanoseconds();
  Slot slot{magic,
            progress.phase,
            progress.epoch,
            progress.epochs,
            progress.step,
            progress.steps,
            progress.loss,
            progress.accuracy,
            progress.stamp,
            0,
            0};
  slot.crc = checksum(slot);
  if (fd_ && ::pwrite(fd_.get(), &slot, sizeof slot, 0) < 0) return;  // errors are ignored
}

std::optional<Progress> read_progress(const std::filesystem::path& file) {
  const auto fd = FileDescriptor::open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  Slot slot{};
  if (!fd || ::pread(fd.get(), &slot, sizeof slot, 0) != static_cast<ssize_t>(sizeof slot))
    return std::nullopt;
  if (slot.magic != magic || slot.crc != checksum(slot) || slot.phase > Phase::probe) return std::nullopt;
  return Progress{.phase = slot.phase,
                  .epoch = slot.epoch,
                  .epochs = slot.epochs,
                  .step = slot.step,
                  .steps = slot.steps,
                  .loss = slot.loss,
                  .accuracy = slot.accuracy,
                  .stamp = slot.stamp};
}

}  // namespace trainyard::experiments
