#include "tools/trainyard/stop_signal.h"

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

}  // namespace trainyard::tools
