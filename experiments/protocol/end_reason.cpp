#include "experiments/protocol/end_reason.h"

#include <algorithm>
#include <array>

namespace trainyard::experiments {

namespace {

constexpr std::string_view finished = "finished", failed = "failed", interrupted = "interrupted";

struct Row {
  EndReason reason;
  std::string_view text;
  std::string_view status;
  bool starts_again = false;
};

constexpr std::array<Row, 8> rows{{{EndReason::finished, "finished", finished},
                                   {EndReason::failed, "failed", failed},
                                   {EndReason::peer_lost, "peer_lost", failed},
                                   {EndReason::stopped, "stopped", interrupted},
                                   {EndReason::preempted, "preempted", interrupted, true},
                                   {EndReason::out_of_time, "out_of_time", interrupted, true},
                                   {EndReason::over_limits, "over_limits", failed},
                                   {EndReason::not_started, "not_started", failed}}};

const Row& row_of(EndReason reason) {
  return rows.at(static_cast<std::size_t>(reason));
}

}  // namespace

std::string_view to_text(EndReason reason) {
  return row_of(reason).text;
}

std::optional<EndReason> end_reason_named(std::string_view text) {
  const auto row = std::ranges::find(rows, text, &Row::text);
  return row == rows.end() ? std::nullopt : std::optional(row->reason);
}

std::string_view status_of(EndReason reason) {
  return row_of(reason).status;
}

bool is_failure(EndReason reason) {
  return row_of(reason).status == failed;
}

bool is_interruption(EndReason reason) {
  return row_of(reason).status == interrupted;
}

bool starts_again(EndReason reason) {
  return row_of(reason).starts_again;
}

EndReason reason_in_text(std::string_view error) {
  for (const std::string_view blame :
       {"losed by peer", "reset by peer", "onnection refused", "roken pipe", "imed out", "imeout"})
    if (error.find(blame) != std::string_view::npos) return EndReason::peer_lost;
  return EndReason::failed;
}

}  // namespace trainyard::experiments
