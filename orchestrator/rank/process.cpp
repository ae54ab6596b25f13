#include "orchestrator/rank/process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

namespace trainyard::orchestrator {

namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

// Everything the child touches, made before the fork: between fork and exec nothing may allocate.
struct Prepared {
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  cpu_set_t cores;
  bool pinned = false;
  std::string folder;
  FileDescriptor input, log, error_in, error_out;
  pid_t parent = ::getpid();
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
  std::vector<std::string> environment;
  environment.reserve(all.size());
  for (const auto& [name, value] : all) environment.push_back(std::string(name).append("=").append(value));
  return environment;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void cannot_start(const RankCommand& command, const std::string& step, int error) {
  throw UserError("cannot start " + command.argv.front() + ": " + step + ": " +
                  std::generic_category().message(error));
}

void prepare(const RankCommand& command, Prepared& prepared) {
  prepared.environment = merged_environment(command.environment);
  prepared.argv = pointers(command.argv);
  prepared.envp = pointers(prepared.environment);
  CPU_ZERO(&prepared.cores);
  for (const int core : command.cores) CPU_SET(core, &prepared.cores);
  prepared.pinned = !command.cores.empty();
  prepared.folder = command.folder.string();
  prepared.input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  prepared.log.reset(::open(command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (prepared.log.get() < 0) cannot_start(command, "log " + command.log.string(), errno);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(command, "pipe", errno);
  prepared.error_in.reset(ends[0]);
  prepared.error_out.reset(ends[1]);
}

enum class Step : int { parent_gone, affinity, redirect, folder, execute };
constexpr std::array<const char*, 5> step_names{"its parent is gone", "pinning it to its cores",
                                                "redirecting its output", "entering its folder",
                                                "executing it"};
struct ChildError {
  Step step;
  int error;
};

void default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child. Returns only when a step failed.
Step become_rank(const Prepared& prepared) {
  ::setsid();  // a group of its own: the terminal's Ctrl-C reaches the orchestrator only
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) return Step::parent_gone;  // it died before the line above
  if (prepared.pinned && ::sched_setaffinity(0, sizeof prepared.cores, &prepared.cores) != 0)
    return Step::affinity;
  default_signals();
  if (::dup2(prepared.input.get(), STDIN_FILENO) < 0 || ::dup2(prepared.log.get(), STDOUT_FILENO) < 0 ||
      ::dup2(prepared.log.get(), STDERR_FILENO) < 0)
    return Step::redirect;
  if (!prepared.folder.empty() && ::chdir(prepared.folder.c_str()) != 0) return Step::folder;
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execvpe(prepared.argv.front(), prepared.argv.data(), prepared.envp.data());
  return Step::execute;
}

// What the child reported before it ended; nothing where exec closed the pipe.
std::optional<ChildError> read_error(int fd) {
  ChildError error{};
  ssize_t size = 0;
  do {
    size = ::read(fd, &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof error)) return std::nullopt;
  return error;
}

// The leader is reaped by the destructor only: until then its pid, which names the group, belongs to nobody
// else.
class LocalProcess : public RankProcess {
 public:
  explicit LocalProcess(pid_t pid)
      : pid_(pid), end_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}  // close-on-exec
  ~LocalProcess() override {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    reap_group();
  }
  LocalProcess(const LocalProcess&) = delete;
  LocalProcess& operator=(const LocalProcess&) = delete;

  int pid() const override { return pid_; }

  std::optional<ExitStatus> poll() override {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return std::nullopt;
    if (info.si_code == CLD_EXITED) return ExitStatus{info.si_status, 0};
    return ExitStatus{-1, info.si_status};
  }

  void signal(int number) override { ::kill(-pid_, number); }
  int end_fd() const override { return end_.get(); }

 private:
  // Its killed grandchildren become ours where this process is a subreaper: wait for them, a second at most.
  void reap_group() const {
    for (int tries = 0; tries < 200 && ::kill(-pid_, 0) == 0; ++tries) {
      while (::waitpid(-pid_, nullptr, WNOHANG) > 0) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  pid_t pid_;
  FileDescriptor end_;
};

}  // namespace

std::unique_ptr<RankProcess> start_process(const RankCommand& command) {
  Prepared prepared;
  prepare(command, prepared);
  const pid_t pid = ::fork();
  if (pid < 0) cannot_start(command, "fork", errno);
  if (pid == 0) {
    const ChildError error{become_rank(prepared), errno};
    [[maybe_unused]] const auto written = ::write(prepared.error_out.get(), &error, sizeof error);
    ::_exit(127);
  }
  auto process = std::make_unique<LocalProcess>(pid);
  prepared.error_out.reset();
  if (const auto error = read_error(prepared.error_in.get()))
    cannot_start(command, step_names.at(static_cast<std::size_t>(error->step)), error->error);
  return process;
}

std::string to_text(const ExitStatus& status) {
  if (status.signal == 0) return "exit code " + std::to_string(status.code);
  const char* name = ::sigabbrev_np(status.signal);
  return "killed by signal " + std::to_string(status.signal) +
         (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

namespace {

// What it says stays in memory: a killed orchestrator leaves no file.
int new_output() {
  const int fd = ::memfd_create("trainyard-client", MFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return fd;
}

}  // namespace

ClientCommand::ClientCommand(std::vector<std::string> argv)
    : fd_(new_output()), output_("/proc/self/fd/" + std::to_string(fd_)) {
  try {
    process_ = start_process({.argv = std::move(argv), .environment = {}, .cores = {}, .log = output_});
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

ClientCommand::~ClientCommand() {
  process_.reset();
  ::close(fd_);
}

std::optional<ClientAnswer> ClientCommand::poll() {
  const auto status = process_->poll();
  if (!status) return std::nullopt;
  return ClientAnswer{*status, whole_file(output_)};
}

std::optional<ClientAnswer> ClientCommand::wait(std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (true) {
    if (auto answer = poll()) return answer;
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string complaint(const ClientAnswer& answer) {
  std::string last = to_text(answer.status);
  for (const std::string& line : lines_of(answer.text)) {
    const auto head = line.find("error: ");
    if (head != std::string::npos) return line.substr(head + 7);
    last = line;
  }
  return last;
}

}  // namespace trainyard::orchestrator
