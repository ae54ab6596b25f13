#include "tests/runner/support/child.h"

#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trainyard::runner::testing {

namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(std::string(name).append("=").append(value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Default handlers for all signals, as in a shell, even if this process ignores some.
struct DefaultSignals {
  DefaultSignals() {
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  }
  ~DefaultSignals() { posix_spawnattr_destroy(&attributes); }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

  posix_spawnattr_t attributes;
};

}  // namespace

Child::Child(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  auto arguments = argv;
  auto variables = merged_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const DefaultSignals signals;
  const int error = posix_spawn(&pid_, argv.front().c_str(), &actions, &signals.attributes,
                                pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  out_ = ends[0];
  if (error != 0) throw std::runtime_error("cannot start " + argv.front());
}

Child::~Child() {
  if (!code_) {
    kill(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
}

void Child::kill(int signal) {
  ::kill(pid_, signal);
}

std::string Child::read_line() {
  std::string line;
  char c = 0;
  while (read(out_, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

std::string Child::read_all() {
  std::string text;
  char c = 0;
  while (read(out_, &c, 1) == 1) text += c;
  return text;
}

std::optional<int> Child::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (!code_) {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) code_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    if (!code_ && std::chrono::steady_clock::now() > end) return std::nullopt;
    if (!code_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return code_;
}

}  // namespace trainyard::runner::testing
