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

// Takes note of SIGTSTP (Ctrl-Z) for as long as it lives, so that the terminal can be left in order before
// the program stops. Only one may live at a time.
class PauseSignal {
 public:
  PauseSignal();
  ~PauseSignal();
  PauseSignal(const PauseSignal&) = delete;
  PauseSignal& operator=(const PauseSignal&) = delete;
  bool came() const;
  void stop_now();  // as the signal would have done; returns when the program is continued

 private:
  struct sigaction before_ {};
};

}  // namespace trainyard::tools
