#include "orchestrator/rank/supervised_ranks.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/host.h"
#include "orchestrator/rank/orphans.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* lock_name = "supervisor.lock";

[[noreturn]] void cannot_supervise(const std::string& call, const std::string& advice) {
  throw UserError(
      "cannot start the supervisor of the ranks: " + call + ": " + std::generic_category().message(errno),
      advice);
}

// Locks a new file of the attempt. If the file system has no locks, nobody waits for the supervisor.
FileDescriptor lock_attempt(const fs::path& attempt_folder) {
  const fs::path file = attempt_folder / lock_name;
  constexpr mode_t for_its_owner = 0600;
  auto fd = FileDescriptor::open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, for_its_owner);
  if (!fd) cannot_supervise(file.string(), "check the permissions of the folder and the space on its disk");
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EINTR) {
  }
  return fd;
}

// Both ends are the same program, so a message is a struct. `not_started` is followed by the error's text.
struct Message {
  enum class Kind { rank_started, all_started, not_started, rank_ended, leftovers };
  Kind kind = Kind::not_started;
  int rank = 0;
  int value = 0;  // pid, exit code, or number of processes
  int signal = 0;
};
constexpr std::size_t longest_text = 4096;

// Supervisor: everything below runs in its process.

constexpr int its_socket = STDERR_FILENO + 1;  // the next descriptor is its lock

// Replace name and arguments of this process.
void take_own_name() {
  constexpr std::string_view name = "rank-supervisor";
  ::prctl(PR_SET_NAME, name.data());
  const auto self = facts_of(::getpid());
  if (!self || self->arguments_begin == 0 || self->arguments_end <= self->arguments_begin) return;
  const std::size_t size = self->arguments_end - self->arguments_begin;
  auto* const text = reinterpret_cast<char*>(
      self->arguments_begin);  // NOLINT(performance-no-int-to-ptr): the kernel's number
  std::memset(text, 0, size);
  std::memcpy(text, name.data(), std::min(name.size(), size - 1));
}

// Leave the terminal and the session, and take the name "rank-supervisor", so that `pkill -f trainyard` does not end this
// process with the orchestrator. Signals have their default effect or, if a terminal sends them, none. The descriptors
// `kept` become 3, 4 and so on, and all others are closed. std::system_error if it fails.
void detach(std::span<const int> kept) {
  ::setsid();
  take_own_name();
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGTSTP})
    ::signal(number, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int end = STDERR_FILENO + 1 + static_cast<int>(kept.size());
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, standard);
  std::vector<int> moved;  // above the numbers that they get
  for (const int fd : kept) moved.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, end));
  if (std::ranges::any_of(moved, [](int fd) { return fd < 0; }))
    throw std::system_error(errno, std::generic_category(), "fcntl");
  for (int number = STDERR_FILENO + 1; const int fd : moved) ::dup3(fd, number++, O_CLOEXEC);
  ::close_range(static_cast<unsigned>(end), ~0U, 0);
}

class Supervisor {
 public:
  void run(const std::function<LocalProcesses()>& start) {
    LocalProcesses processes;
    try {
      processes = start();
    } catch (const std::exception& error) {
      end_children();
      const bool lacks_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
      send({Message::Kind::not_started}, lacks_memory ? no_memory_reason : error.what());
      return;
    }
    ended_.resize(processes.ranks.size());
    for (std::size_t rank = 0; rank < processes.ranks.size(); ++rank)
      send({Message::Kind::rank_started, static_cast<int>(rank), processes.ranks[rank]->pid()});
    send({Message::Kind::all_started});
    const bool wanted = watch(processes);
    if (!wanted)
      for (const auto& rank : processes.ranks) rank->signal(SIGKILL);
    processes = {};
    const int leftovers = end_children();
    if (wanted) send({Message::Kind::leftovers, 0, leftovers});
  }

 private:
  // Returns true once all ranks have ended, and false if the orchestrator has ended.
  bool watch(const LocalProcesses& processes) {
    while (true) {
      std::vector<pollfd> polled{{its_socket, POLLIN, 0}};
      for (std::size_t rank = 0; rank < ended_.size(); ++rank) {
        if (ended_[rank] || report_end(rank, *processes.ranks[rank])) continue;
        polled.push_back({processes.ranks[rank]->end_fd(), POLLIN, 0});
      }
      if (std::ranges::all_of(ended_, [](bool ended) { return ended; })) return true;
      ::poll(polled.data(), polled.size(), -1);
      if (polled.front().revents != 0 && !obey(processes)) return false;
    }
  }

  bool report_end(std::size_t rank, const RankProcess& process) {
    const auto status = process.poll();
    if (!status) return false;
    ended_[rank] = true;
    send({Message::Kind::rank_ended, static_cast<int>(rank), status->code, status->signal});
    return true;
  }

  // Sends the signal that the orchestrator wrote to the ranks. Returns false if the orchestrator has ended.
  bool obey(const LocalProcesses& processes) {
    int number = 0;
    const ssize_t size = ::recv(its_socket, &number, sizeof number, MSG_DONTWAIT);
    // At the end of the socket there is no error, so `errno` is an old one.
    if (size != sizeof number) return size < 0 && (errno == EAGAIN || errno == EINTR);
    for (std::size_t rank = 0; rank < ended_.size(); ++rank)
      if (!ended_[rank]) processes.ranks[rank]->signal(number);
    return true;
  }

  // Returns false if the orchestrator has ended.
  static bool send(const Message& message, const std::string& text = "") {
    std::string packet(reinterpret_cast<const char*>(&message), sizeof message);
    packet += text.substr(0, longest_text);
    return ::send(its_socket, packet.data(), packet.size(), MSG_NOSIGNAL) >= 0;
  }

  std::vector<bool> ended_;  // by rank
};

}  // namespace

SupervisedRanks::SupervisedRanks(SupervisorSetting setting, const std::function<LocalProcesses()>& start)
    : setting_(std::move(setting)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    cannot_supervise("socketpair", "raise the limit of open files (ulimit -n)");
  socket_ = FileDescriptor(ends[0]);
  FileDescriptor its_end(ends[1]);
  // Both processes hold the lock, so there is no moment without it.
  FileDescriptor lock = lock_attempt(setting_.attempt_folder);
  since_ticks_ = ticks_now();
  // If the supervisor fails, the kernel kills its ranks, and this process ends the rest.
  const std::array fds{its_end.get(), lock.get()};
  supervisor_ = ::fork();
  if (supervisor_ < 0) cannot_supervise("fork", "raise the limits of processes and memory (ulimit -u, -v)");
  if (supervisor_ == 0) {
    try {
      detach(fds);
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
      Supervisor().run(start);
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  its_end.reset();
  lock.reset();
  setting_.supervisors->insert(supervisor_);
  try {
    wait_for_start();
  } catch (...) {
    release();
    throw;
  }
}

void SupervisedRanks::wait_for_start() {
  while (!started_ && start_error_.empty())
    if (!read_message() && over_)
      throw UserError("the supervisor ended before it had started the ranks: " +
                          to_text(end_.supervisor_failed.value_or(ExitStatus{})),
                      "run the command again");
  if (!start_error_.empty()) throw UserError(start_error_);
  ended_.resize(pids_.size());
}

// Reads one message. Waits for it only before the start. Returns false if there is none.
bool SupervisedRanks::read_message() {
  std::array<char, sizeof(Message) + longest_text> packet{};
  const ssize_t size = ::recv(socket_.get(), packet.data(), packet.size(), started_ ? MSG_DONTWAIT : 0);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  Message message;
  if (size < static_cast<ssize_t>(sizeof message)) {
    release();
    return false;
  }
  std::memcpy(&message, packet.data(), sizeof message);
  switch (message.kind) {
    case Message::Kind::rank_started:
      pids_.push_back(message.value);
      break;
    case Message::Kind::all_started:
      started_ = true;
      break;
    case Message::Kind::not_started:
      start_error_.assign(packet.data() + sizeof message, static_cast<std::size_t>(size) - sizeof message);
      break;
    case Message::Kind::rank_ended:
      ended_.at(static_cast<std::size_t>(message.rank)) = ExitStatus{message.value, message.signal};
      break;
    case Message::Kind::leftovers:
      end_.leftovers = message.value;
      break;
  }
  return true;
}

void SupervisedRanks::read_messages() {
  while (!over_ && read_message()) {
  }
}

// Waits until the supervisor has closed its socket, which it does only by ending. Returns false if it takes too long.
bool SupervisedRanks::supervisor_ends() {
  constexpr int patience = 5000;  // milliseconds
  std::array<char, sizeof(Message) + longest_text> unread{};
  while (true) {
    pollfd polled{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&polled, 1, patience);
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
    const ssize_t size = ::recv(socket_.get(), unread.data(), unread.size(), MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno == ECONNRESET)) return true;
    if (size < 0 && errno != EAGAIN && errno != EINTR) return false;
  }
}

// Ends the supervisor and, with it, everything else. A supervisor that does not end in time is killed.
void SupervisedRanks::release() {
  if (over_) return;
  over_ = true;
  ::shutdown(socket_.get(), SHUT_WR);
  if (!supervisor_ends()) ::kill(supervisor_, SIGKILL);
  int status = 0;
  while (::waitpid(supervisor_, &status, 0) < 0 && errno == EINTR) {
  }
  setting_.supervisors->erase(supervisor_);
  if (WIFSIGNALED(status))
    end_.supervisor_failed = ExitStatus{-1, WTERMSIG(status)};
  else if (status != 0)
    end_.supervisor_failed = ExitStatus{WEXITSTATUS(status), 0};
  const int left = end_children(*setting_.supervisors, since_ticks_);
  if (!end_.supervisor_failed) end_.leftovers += left;  // else it includes the ranks
  ::unlink((setting_.attempt_folder / lock_name).c_str());
  for (auto& rank : ended_)
    if (!rank) rank = ExitStatus{-1, 0, true};
}

std::optional<ExitStatus> SupervisedRanks::poll(int rank) {
  read_messages();
  return ended_.at(static_cast<std::size_t>(rank));
}

void SupervisedRanks::signal(int number) {
  if (!over_) ::send(socket_.get(), &number, sizeof number, MSG_NOSIGNAL);
}

std::optional<SupervisedRanks::End> SupervisedRanks::end() {
  read_messages();
  return over_ ? std::optional(end_) : std::nullopt;
}

bool wait_for_supervisor(const fs::path& attempt_folder, std::chrono::milliseconds at_most) {
  // It may be a pipe, because others may be able to write to the folder.
  const auto lock = FileDescriptor::open(attempt_folder / lock_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat found {};
  if (!lock || ::fstat(lock.get(), &found) != 0 || !S_ISREG(found.st_mode)) return true;
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  while (::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace trainyard::orchestrator
