#include "runner/communicator/shared_memory.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
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

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Only a memfd can have these seals, so this is never a file of the user's, not even one on tmpfs.
bool is_shared_memory(const FileDescriptor& file, std::size_t bytes) {
  struct stat status {};
  return ::fcntl(file.get(), F_GET_SEALS) == seals && ::fstat(file.get(), &status) == 0 &&
         status.st_uid == ::geteuid() && static_cast<std::size_t>(status.st_size) == bytes;
}

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

template <class T>
T* at(const SharedMemory& memory, std::size_t offset) {
  return reinterpret_cast<T*>(memory.data() + offset);
}

// The shared memory: rank 0 makes it and the others open it. Null if that fails.
std::shared_ptr<SharedMemory> open_memory(c10d::Store& store, int rank, std::size_t bytes) {
  std::shared_ptr<SharedMemory> memory;
  try {
    if (rank == 0) memory = std::make_shared<SharedMemory>(bytes);
  } catch (const std::system_error&) {
    // rank 0 reports it to the other ranks below
  }
  if (rank == 0) store.set("memory", memory ? memory->descriptor() : "none");
  const std::string descriptor = store.get_to_str("memory");
  try {
    if (rank != 0 && descriptor != "none") memory = std::make_shared<SharedMemory>(descriptor, bytes);
  } catch (const std::system_error&) {
    // this rank reports it to the other ranks in `meet`
  }
  return memory;
}

}  // namespace

Pages pages_of_host() {
  return {.bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)),
          .count = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES))};
}

SharedMemory::SharedMemory(std::size_t bytes)
    : file_(::memfd_create("trainyard", MFD_CLOEXEC | MFD_ALLOW_SEALING)), size_(bytes) {
  if (!file_) fail("memfd_create");
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("ftruncate");
  if (::fcntl(file_.get(), F_ADD_SEALS, seals) != 0) fail("sealing shared memory");
  map();
}

SharedMemory::SharedMemory(const std::string& descriptor, std::size_t bytes)
    : file_(FileDescriptor::open(descriptor, O_RDWR)), size_(bytes) {
  if (!file_) fail("open");
  if (!is_shared_memory(file_, bytes))
    throw std::system_error(EPERM, std::generic_category(), descriptor + " is not the memory of a rank");
  map();
}

void SharedMemory::map() {
  void* address = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (address == MAP_FAILED) fail("mmap");
  data_ = static_cast<std::byte*>(address);
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_);
}

std::string SharedMemory::descriptor() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

void FutexEvent::ring() {
  rings_.fetch_add(1);
  if (sleepers_.load() > 0) futex(rings_, FUTEX_WAKE, INT_MAX, nullptr);
}

void FutexEvent::wait(std::uint32_t rings, std::chrono::milliseconds patience) {
  const timespec limit{.tv_sec = patience.count() / 1000, .tv_nsec = patience.count() % 1000 * 1'000'000};
  sleepers_.fetch_add(1);
  futex(rings_, FUTEX_WAIT, rings, &limit);  // returns at once if the event has rung since
  sleepers_.fetch_sub(1);
}

Peers::Peers(const std::vector<int>& pids) {
  for (const int pid : pids) descriptors_.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool Peers::has_ended(int rank) const {
  pollfd process{.fd = descriptors_[static_cast<std::size_t>(rank)].get(), .events = POLLIN, .revents = 0};
  return process.fd >= 0 && ::poll(&process, 1, 0) == 1;
}

std::uint64_t ArenaAllocator::take(std::size_t bytes) {
  const std::size_t wanted = rounded_up(std::max<std::size_t>(bytes, 1), 64);
  const auto fitting = free_.lower_bound(wanted);
  if (fitting != free_.end() && fitting->first <= 2 * wanted) {
    const auto [size, offset] = *fitting;
    free_.erase(fitting);
    used_[offset] = size;
    return offset;
  }
  if (wanted > capacity_ - end_) throw std::bad_alloc();
  used_[end_] = wanted;
  return std::exchange(end_, end_ + wanted);
}

void ArenaAllocator::give_back(std::uint64_t offset) {
  const auto block = used_.find(offset);
  free_.emplace(block->second, offset);
  used_.erase(block);
}

SharedGroup::Places SharedGroup::places_of(int group_size, const Pages& pages) {
  const auto size = static_cast<std::size_t>(group_size);
  Places places;
  places.states = rounded_up(sizeof(FutexEvent), alignof(State));
  places.contributions = places.states + size * sizeof(State);
  places.messages = places.contributions + size * collectives_under_way * sizeof(Contribution);
  places.parts =
      rounded_up(places.messages + size * size * messages_under_way * sizeof(Message), pages.bytes);
  places.part_bytes = pages.count * pages.bytes;
  places.bytes = places.parts + size * places.part_bytes;
  return places;
}

std::unique_ptr<SharedGroup> SharedGroup::meet(const Store& store, const std::string& name,
                                               const GroupOptions& group) {
  const Store own = c10::make_intrusive<c10d::PrefixStore>("shared memory of " + name, store);
  const Places places = places_of(group.size, pages_of_host());
  auto memory = open_memory(*own, group.rank, places.bytes);
  own->set("rank " + std::to_string(group.rank), memory ? std::to_string(::getpid()) : "none");
  std::vector<int> pids;
  for (int r = 0; r < group.size; ++r) {
    const std::string pid = own->get_to_str("rank " + std::to_string(r));
    if (pid == "none") return nullptr;
    pids.push_back(std::stoi(pid));
  }
  return std::unique_ptr<SharedGroup>(new SharedGroup(group, std::move(memory), pids));
}

SharedGroup::SharedGroup(const GroupOptions& group, std::shared_ptr<SharedMemory> memory,
                         const std::vector<int>& pids)
    : group_(group), memory_(std::move(memory)), blocks_(0), peers_(pids) {
  const Places places = places_of(group.size, pages_of_host());
  event_ = at<FutexEvent>(*memory_, 0);
  states_ = at<State>(*memory_, places.states);
  contributions_ = at<Contribution>(*memory_, places.contributions);
  messages_ = at<Message>(*memory_, places.messages);
  parts_ = at<std::byte>(*memory_, places.parts);
  part_bytes_ = places.part_bytes;
  blocks_ = ArenaAllocator(part_bytes_);
}

SharedGroup::~SharedGroup() {
  states_[group_.rank].has_quit.store(1);
  ring();
}

Contribution& SharedGroup::contribution(int rank, std::uint64_t number) const {
  return contributions_[static_cast<std::uint64_t>(rank) * collectives_under_way +
                        number % collectives_under_way];
}

Message& SharedGroup::message(int from, int to, std::uint64_t number) const {
  const auto pair =
      static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(size()) + static_cast<std::uint64_t>(to);
  return messages_[pair * messages_under_way + number % messages_under_way];
}

std::byte* SharedGroup::data(int rank, std::uint64_t offset) const {
  return parts_ + static_cast<std::size_t>(rank) * part_bytes_ + offset;
}

std::optional<std::uint64_t> SharedGroup::own_offset(const void* address, std::size_t bytes) const {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(data(rank(), 0));
  if (place < begin || place + bytes > begin + part_bytes_) return std::nullopt;
  return place - begin;
}

void SharedGroup::wait(const char* operation, const std::function<std::optional<int>()>& missing) const {
  constexpr std::chrono::milliseconds nap{20};
  for (int i = 0; i < spin_limit; ++i) {
    if (!missing()) return;
    pause_core();
  }
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const std::uint32_t rings = event_->rings();
    const std::optional<int> late = missing();
    if (!late) return;
    if (const char* why = failure_of(*late, start)) {
      // The rank may have done its part and left after the check above. Then it is no longer missing.
      if (missing() == late) give_up(operation, *late, why);
    } else {
      event_->wait(rings, nap);
    }
  }
}

std::optional<int> SharedGroup::lost_rank() const {
  for (int other = 0; other < size(); ++other)
    if (states_[other].has_quit.load() != 0 || peers_.has_ended(other)) return other;
  return std::nullopt;
}

const char* SharedGroup::failure_of(int rank, std::chrono::steady_clock::time_point waited_since) const {
  if (states_[rank].has_quit.load() != 0) return "has left";
  if (peers_.has_ended(rank)) return "has ended";
  if (std::chrono::steady_clock::now() - waited_since > group_.timeout) return "did not answer in time";
  return nullptr;
}

void SharedGroup::give_up(const char* operation, int missing, const char* why) const {
  throw CommunicationError("rank " + std::to_string(rank()) + ": " + operation + " failed: rank " +
                           std::to_string(missing) + " " + why);
}

}  // namespace trainyard::runner
