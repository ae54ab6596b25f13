// Counts SIGINT, SIGTERM and SIGHUP for as long as it lives: one asks a sweep to end its runs in order, two
// at once. Only one may live at a time.
#pragma once

#include <atomic>
#include <csignal>

namespace trainyard::tools {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  const std::atomic<int>& count() const;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
  struct sigaction hang_up_ {};
  struct sigaction pipe_ {};
};

}  // namespace trainyard::tools
