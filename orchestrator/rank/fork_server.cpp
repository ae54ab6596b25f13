#include "orchestrator/rank/fork_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "orchestrator/rank/cgroup.h"

namespace trainyard::orchestrator {

namespace {

// Replaces name and arguments of this process.
void take_own_name() {
  constexpr std::string_view name = "rank-supervisor";
  std::array<char, 16> present{};
  if (::prctl(PR_GET_NAME, present.data()) == 0 && present.data() == name) return;
  ::prctl(PR_SET_NAME, name.data());
  const std::string stat = whole_file("/proc/self/stat");
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  constexpr int first = 3, of_arguments = 48;  // fields of /proc/PID/stat, from 1
  std::string skipped;
  for (int field = first; field < of_arguments; ++field) fields >> skipped;
  std::uintptr_t begin = 0, end = 0;
  fields >> begin >> end;
  if (!fields || begin == 0 || end <= begin) return;
  auto* const text =
      reinterpret_cast<char*>(begin);  // NOLINT(performance-no-int-to-ptr): the kernel's number
  std::memset(text, 0, end - begin);
  std::memcpy(text, name.data(), std::min<std::size_t>(name.size(), end - begin - 1));
}

// A request is a message of one byte with three descriptors: a file in memory with the texts, and those of the child.
constexpr std::size_t descriptors = 3;
struct RequestMessage {
  RequestMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = ancillary.data();
    header.msg_controllen = ancillary.size();
  }
  RequestMessage(const RequestMessage&) = delete;  // `header` points to other members
  RequestMessage& operator=(const RequestMessage&) = delete;
  ~RequestMessage() = default;

  static constexpr std::size_t bytes_of_descriptors = sizeof(int) * descriptors;
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(bytes_of_descriptors)> ancillary{};
  msghdr header{};
};

FileDescriptor file_of(const ForkServer::Request& request) {
  FileDescriptor file(::memfd_create("request", MFD_CLOEXEC));
  const std::string text = request.cgroup.native() + '\0' + request.text;
  if (file && ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    file.reset();
  return file;
}

ForkServer::Request request_in(int file) {
  const std::string text = whole_file("/proc/self/fd/" + std::to_string(file));
  const std::size_t end = std::min(text.find('\0'), text.size());
  return {text.substr(std::min(end + 1, text.size())), text.substr(0, end)};
}

bool send(int socket, const std::array<int, descriptors>& fds) {
  RequestMessage message;
  cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  return ::sendmsg(socket, &message.header, MSG_NOSIGNAL) == 1;
}

// Waits for a request. Empty if the other process has ended.
std::vector<FileDescriptor> receive(int socket) {
  RequestMessage message;
  ssize_t size = -1;
  while (size < 0 && (size = ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  std::vector<FileDescriptor> fds;
  const cmsghdr* const header = size == 1 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (header == nullptr || header->cmsg_len != CMSG_LEN(RequestMessage::bytes_of_descriptors)) return fds;
  std::array<int, descriptors> numbers{};
  std::memcpy(numbers.data(), CMSG_DATA(header), sizeof numbers);
  for (const int number : numbers) fds.emplace_back(number);
  return fds;
}

void serve(const ForkServer::Task& task) {
  while (true) {
    const std::vector<FileDescriptor> fds = receive(ForkServer::first_fd);
    if (fds.empty()) return;
    const ForkServer::Request request = request_in(fds[0].get());
    const pid_t pid = Cgroup::fork_sibling(request.cgroup);
    if (pid == 0) {
      detach(std::array{fds[1].get(), fds[2].get()});
      task(request);
      return;
    }
    (void)!::send(ForkServer::first_fd, &pid, sizeof pid, MSG_NOSIGNAL);
  }
}

}  // namespace

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

ForkServer::ForkServer(const Task& task) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor its_end(ends[1]);
  pid_ = ::fork();
  if (pid_ != 0) return;
  try {
    detach(std::array{its_end.get()});
    serve(task);
  } catch (const std::bad_alloc&) {
    ::_exit(ENOMEM);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

ForkServer::~ForkServer() {
  socket_.reset();
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

pid_t ForkServer::fork(const Request& request, std::span<const int, 2> fds) {
  const FileDescriptor file = pid_ > 0 ? file_of(request) : FileDescriptor();
  if (!file || !send(socket_.get(), {file.get(), fds[0], fds[1]})) return -1;
  pid_t pid = -1;
  ssize_t size = -1;
  while ((size = ::recv(socket_.get(), &pid, sizeof pid, 0)) < 0 && errno == EINTR) {
  }
  return size == sizeof pid ? pid : -1;
}

}  // namespace trainyard::orchestrator
