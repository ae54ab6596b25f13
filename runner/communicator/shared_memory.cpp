#include "runner/communicator/shared_memory.h"

#include <cerrno>
#include <climits>
#include <system_error>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainyard::runner {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* patience) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, patience, nullptr,
                   0);
}

}  // namespace

Pages pages_of_host() {
  return {.bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)),
          .count = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES))};
}

SharedMemory::SharedMemory(std::size_t bytes)
    : file_(::memfd_create("trainyard", MFD_CLOEXEC)), size_(bytes) {
  if (file_ < 0) fail("memfd_create");
  if (::ftruncate(file_, static_cast<off_t>(bytes)) != 0) {
    ::close(file_);
    fail("ftruncate");
  }
  map();
}

SharedMemory::SharedMemory(const std::string& descriptor, std::size_t bytes)
    : file_(::open(descriptor.c_str(), O_RDWR | O_CLOEXEC)), size_(bytes) {
  if (file_ < 0) fail("open");
  map();
}

void SharedMemory::map() {
  void* address = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (address == MAP_FAILED) {
    ::close(file_);
    fail("mmap");
  }
  data_ = static_cast<std::byte*>(address);
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_);
  ::close(file_);
}

std::string SharedMemory::descriptor() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}

void Bell::ring() {
  rings_.fetch_add(1);
  if (sleepers_.load() > 0) futex(rings_, FUTEX_WAKE, INT_MAX, nullptr);
}

void Bell::wait(std::uint32_t rings, std::chrono::milliseconds patience) {
  const timespec limit{.tv_sec = patience.count() / 1000, .tv_nsec = patience.count() % 1000 * 1'000'000};
  sleepers_.fetch_add(1);
  futex(rings_, FUTEX_WAIT, rings, &limit);  // returns at once where it has rung meanwhile
  sleepers_.fetch_sub(1);
}

Peers::Peers(const std::vector<int>& pids) {
  for (const int pid : pids) descriptors_.push_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Peers::~Peers() {
  for (const int descriptor : descriptors_)
    if (descriptor >= 0) ::close(descriptor);
}

bool Peers::has_ended(int rank) const {
  pollfd process{.fd = descriptors_[static_cast<std::size_t>(rank)], .events = POLLIN, .revents = 0};
  return process.fd >= 0 && ::poll(&process, 1, 0) == 1;
}

}  // namespace trainyard::runner
