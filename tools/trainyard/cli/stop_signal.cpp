#include "tools/trainyard/cli/stop_signal.h"

namespace trainyard::tools {
namespace {

// A signal handler reaches nothing else than what is static.
std::atomic<int>& stop_count() {
  static std::atomic<int> count{0};
  static_assert(std::atomic<int>::is_always_lock_free);
  return count;
}

extern "C" void count_stop(int) {
  stop_count().fetch_add(1);
}

std::atomic<bool>& pause_came() {
  static std::atomic<bool> came{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  return came;
}

extern "C" void note_pause(int) {
  pause_came() = true;
}

void replace_action(int number, void (*handler)(int), struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, &before);
}

}  // namespace

StopSignal::StopSignal() {
  stop_count() = 0;  // made before the first signal can come
  replace_action(SIGINT, count_stop, interrupt_);
  replace_action(SIGTERM, count_stop, terminate_);
  replace_action(SIGHUP, count_stop, hang_up_);
  replace_action(SIGPIPE, SIG_IGN, pipe_);  // a reader that went away does not end a sweep
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGHUP, &hang_up_, nullptr);
  sigaction(SIGPIPE, &pipe_, nullptr);
}

const std::atomic<int>& StopSignal::count() const {
  return stop_count();
}

PauseSignal::PauseSignal() {
  pause_came() = false;
  replace_action(SIGTSTP, note_pause, before_);
}

PauseSignal::~PauseSignal() {
  sigaction(SIGTSTP, &before_, nullptr);
}

bool PauseSignal::came() const {
  return pause_came();
}

void PauseSignal::stop_now() {
  pause_came() = false;
  struct sigaction noting {};
  replace_action(SIGTSTP, SIG_DFL, noting);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &noting, nullptr);
}

}  // namespace trainyard::tools
