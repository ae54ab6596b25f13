#include "orchestrator/rank/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/host.h"
#include "base/plain_file.h"
#include "base/text.h"

// Version 1 of Boost.Process is header-only. Version 2 needs an Asio executor for each process. Boost 1.86
// moved version 1 into its own folder and namespace.
#define BOOST_PROCESS_USE_STD_FS  // else it needs the library Boost.Filesystem
#define BOOST_POSIX_HAS_VFORK 1   // as Linux does; Boost asks for the version of POSIX that removed it
#if __has_include(<boost/process/v1/child.hpp>)
#include <boost/process/v1/child.hpp>
#include <boost/process/v1/env.hpp>
#include <boost/process/v1/environment.hpp>
#include <boost/process/v1/error.hpp>
#include <boost/process/v1/extend.hpp>
#include <boost/process/v1/posix.hpp>
#else
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/environment.hpp>
#include <boost/process/error.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/posix.hpp>
#endif

namespace trainyard::orchestrator {

#if __has_include(<boost/process/v1/child.hpp>)
namespace bp = boost::process::v1;
#else
namespace bp = boost::process;
#endif

namespace {

[[noreturn]] void cannot_start(const RankCommand& command, const std::string& problem) {
  throw UserError("cannot start " + command.argv.front() + ": " + problem);
}
[[noreturn]] void cannot_start(const RankCommand& command, const std::string& step, int error) {
  cannot_start(command, step + ": " + std::generic_category().message(error));
}

// Path of the program. A name without a slash is searched in PATH. Any other name is relative to the working
// directory of the process.
std::string program_of(const RankCommand& command) {
  const std::string& name = command.argv.front();
  if (name.find('/') != std::string::npos) return name;
  const auto found = program_path(name, command.folder);
  if (!found) cannot_start(command, "executing it", ENOENT);
  return std::filesystem::absolute(*found).string();
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Everything that the child uses. It shares the memory of this process until exec (vfork), so it must not allocate, and
// starting it costs the same however much memory this process has.
struct Prepared {
  std::string program;
  bp::environment environment{bp::native_environment()};  // copy of this process's environment
  std::vector<char*> argv;
  cpu_set_t cores;
  bool pinned = false;
  std::string folder;
  FileDescriptor input, log;
  pid_t parent = ::getpid();
};

void prepare(const RankCommand& command, Prepared& prepared) {
  prepared.program = program_of(command);
  for (const auto& [name, value] : command.environment) prepared.environment[name] = value;
  prepared.argv = pointers(command.argv);
  CPU_ZERO(&prepared.cores);
  for (const int core : command.cores) CPU_SET(core, &prepared.cores);
  prepared.pinned = !command.cores.empty();
  prepared.folder = command.folder.string();
  prepared.input = FileDescriptor::open("/dev/null", O_RDONLY);
  OpenedFile log = open_plain(command.log, O_WRONLY | O_CREAT | O_APPEND);
  if (!log.fd) cannot_start(command, "log " + command.log.string() + ": " + log.problem);
  prepared.log = std::move(log.fd);
}

// The child reports one number: the failed step times this factor, plus errno.
constexpr int errors_of_a_step = 1 << 16;
enum class Step : int { execute, parent_gone, affinity, redirect, folder };
constexpr std::array<const char*, 5> step_names{"executing it", "its parent is gone",
                                                "pinning it to its cores", "redirecting its output",
                                                "entering its folder"};

void default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Sets up the child before exec. Returns the step that failed, with errno.
std::optional<Step> become_rank(const Prepared& prepared) {
  ::setsid();  // its own group: Ctrl-C in the terminal reaches only the orchestrator
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) return Step::parent_gone;  // it died before prctl
  if (prepared.pinned && ::sched_setaffinity(0, sizeof prepared.cores, &prepared.cores) != 0)
    return Step::affinity;
  default_signals();
  if (::dup2(prepared.input.get(), STDIN_FILENO) < 0 || ::dup2(prepared.log.get(), STDOUT_FILENO) < 0 ||
      ::dup2(prepared.log.get(), STDERR_FILENO) < 0)
    return Step::redirect;
  if (!prepared.folder.empty() && ::chdir(prepared.folder.c_str()) != 0) return Step::folder;
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  return std::nullopt;
}

// Hooks for Boost. They do what its own settings cannot: `start_dir` ignores a missing folder, and a
// redirection neither appends nor closes its descriptor on exec.
struct RankSetup : bp::extend::handler {
  explicit RankSetup(const Prepared& made) : prepared(made) {}

  // Boost's own argv would begin with the path, and Boost reads the first character of empty arguments.
  template <typename Executor>
  void on_setup(Executor& executor) const {
    executor.exe = prepared.program.c_str();
    executor.cmd_line = prepared.argv.data();
  }

  template <typename Executor>
  void on_exec_setup(Executor& executor) const {
    const auto failed = become_rank(prepared);
    if (!failed) return;
    executor.set_error({static_cast<int>(*failed) * errors_of_a_step + errno, std::system_category()}, "");
    ::_exit(127);  // otherwise Boost would start the program anyway
  }

  // Boost reaps a child only if it has ended already.
  template <typename Executor>
  void on_error(Executor& executor, const std::error_code& /*error*/) const {
    while (executor.pid > 0 && ::waitpid(executor.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  const Prepared& prepared;
};

// Killed grandchildren become ours if this process is a subreaper. Waits for them, at most a second.
void reap_group(pid_t group) {
  for (int tries = 0; tries < 200 && ::kill(-group, 0) == 0; ++tries) {
    while (::waitpid(-group, nullptr, WNOHANG) > 0) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

RankProcess::RankProcess(pid_t pid)
    : pid_(pid), end_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}  // close-on-exec

RankProcess::~RankProcess() {
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  reap_group(pid_);
}

std::optional<ExitStatus> RankProcess::poll() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  if (info.si_code == CLD_EXITED) return ExitStatus{info.si_status, 0};
  return ExitStatus{-1, info.si_status};
}

void RankProcess::signal(int number) const {
  ::kill(-pid_, number);
}

std::unique_ptr<RankProcess> start_process(const RankCommand& command) {
  Prepared prepared;
  prepare(command, prepared);
  const RankSetup setup(prepared);
  std::error_code error;
  bp::child child(prepared.environment, error, bp::posix::use_vfork, setup);
  if (error)
    cannot_start(command, step_names.at(static_cast<std::size_t>(error.value() / errors_of_a_step)),
                 error.value() % errors_of_a_step);
  child.detach();  // Boost would reap the leader, and free its pid, too early
  auto process = std::make_unique<RankProcess>(child.id());
  if (process->end_fd() < 0) cannot_start(command, "watching it", errno);
  return process;
}

std::string to_text(const ExitStatus& status) {
  if (status.signal == 0) return fmt::format("exit code {}", status.code);
  const char* name = ::sigabbrev_np(status.signal);
  return fmt::format("killed by signal {}{}", status.signal,
                     name != nullptr ? fmt::format(" (SIG{})", name) : "");
}

namespace {

// The output is a file in memory: a killed orchestrator leaves no file.
FileDescriptor new_output() {
  FileDescriptor fd(::memfd_create("trainyard-client", MFD_CLOEXEC));
  if (!fd) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return fd;
}

}  // namespace

ClientCommand::ClientCommand(std::vector<std::string> argv)
    : fd_(new_output()),
      output_("/proc/self/fd/" + std::to_string(fd_.get())),
      process_(start_process({.argv = std::move(argv), .environment = {}, .cores = {}, .log = output_})) {}

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

std::string complaint(const ClientAnswer& answer) {
  std::string last = to_text(answer.status);
  for (const std::string& line : nonempty_lines(answer.text)) {
    const auto head = line.find("error: ");
    if (head != std::string::npos) return line.substr(head + 7);
    last = line;
  }
  return last;
}

}  // namespace trainyard::orchestrator
