#include "orchestrator/sweep/watchdog.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/format.h>

#include "experiments/protocol/record.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

std::uintmax_t size_of(const fs::path& file) {
  std::error_code missing;
  const auto size = fs::file_size(file, missing);
  return missing ? 0 : size;
}

std::string place_of(const std::optional<experiments::Progress>& progress) {
  if (!progress) return "before any progress";
  const char* phase = phase_name(progress->phase);
  if (progress->phase == experiments::Phase::probe)
    return fmt::format("in the {}, step {}", phase, progress->step);
  if (progress->epoch == 0) return fmt::format("in {}", phase);
  return fmt::format("in epoch {}, {} step {}", progress->epoch, phase, progress->step);
}

}  // namespace

const char* phase_name(experiments::Phase phase) {
  static constexpr std::array names{"set-up", "training", "validation", "test", "shutdown", "parity check"};
  return names.at(static_cast<std::size_t>(phase));
}

Watchdog::Watchdog(fs::path attempt_folder, int ranks, Clock::time_point now)
    : folder_(std::move(attempt_folder)), ranks_(static_cast<std::size_t>(ranks)) {
  for (Rank& rank : ranks_) rank.last_sign = now;
}

void Watchdog::poll(Clock::time_point now) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const int number = static_cast<int>(i);
    if (const auto progress = experiments::read_progress(folder_ / experiments::rank_progress_name(number)))
      rank.progress = progress;
    const std::uint64_t stamp = rank.progress ? rank.progress->stamp : 0;
    const std::uintmax_t bytes = size_of(folder_ / experiments::rank_records_name(number)) +
                                 size_of(folder_ / experiments::rank_log_name(number));
    if (stamp != rank.stamp || bytes != rank.bytes) rank.last_sign = now;
    rank.stamp = stamp;
    rank.bytes = bytes;
  }
}

double Watchdog::silent_seconds(Clock::time_point now) const {
  const auto last = std::ranges::max_element(ranks_, {}, &Rank::last_sign);
  return std::chrono::duration<double>(now - last->last_sign).count();
}

int Watchdog::first_stalled_rank() const {
  return static_cast<int>(std::ranges::min_element(ranks_, {}, &Rank::last_sign) - ranks_.begin());
}

std::string Watchdog::text() const {
  const int first = first_stalled_rank();
  return fmt::format("rank {} stalled first, {}", first,
                     place_of(ranks_[static_cast<std::size_t>(first)].progress));
}

}  // namespace trainyard::orchestrator
