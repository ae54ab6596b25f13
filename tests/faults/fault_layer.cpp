#include "tests/faults/fault_layer.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainyard::faults {

namespace {

// Static, because a replaced C function has no other way to its state.
struct State {
  std::atomic<Fault> fault = Fault::none;
  std::atomic<long> at = 0;
  std::atomic<long> count = 0;
  std::atomic<long> clock_shift = 0;
  std::atomic<pid_t> pid = 0;
  std::array<char, 4096> folder{};
  Synced* synced = nullptr;
};
State& state() {
  static State only;
  return only;
}

bool below(const char* path) {
  const char* folder = state().folder.data();
  return *folder != '\0' && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool below(int fd) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link.data(), path.data(), path.size() - 1);
  return size > 0 && below(path.data());
}

// Whether this call must fail. Does not return if the process is to be killed.
template <typename Place, typename BeforeDeath>
bool fails(Place place, BeforeDeath&& before_death) {
  State& all = state();
  if (all.pid != ::getpid() || !below(place)) return false;
  const long number = ++all.count;
  const Fault fault = all.fault;
  if (fault == Fault::none || number < all.at) return false;
  if (fault == Fault::killed && number == all.at) {
    before_death();
    ::kill(::getpid(), SIGKILL);
  }
  errno = fault == Fault::full ? ENOSPC : fault == Fault::broken ? EIO : EROFS;
  return fault != Fault::killed;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// On a full disk the first failing write still writes half of its bytes.
bool takes_half(ssize_t& taken, const auto& write_half) {
  if (state().fault != Fault::full || state().count != state().at) return false;
  taken = write_half();
  return taken > 0;
}

constexpr auto nothing = [] {};

Synced::Place* place_of(const char* path) {
  Synced* all = state().synced;
  for (int i = 0; i < all->count; ++i)
    if (std::strcmp(all->places[i].path, path) == 0) return &all->places[i];
  if (all->count == Synced::most || std::strlen(path) >= sizeof all->places[0].path) return nullptr;
  Synced::Place& added = all->places[all->count++];
  std::snprintf(added.path, sizeof added.path, "%s", path);
  added.size = -1;
  added.named = false;
  return &added;
}

// All names in a folder that was synced.
void note_names(const char* path) {
  DIR* folder = ::opendir(path);
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = std::string(path) + "/" + entry->d_name;
    if (Synced::Place* place = place_of(name.c_str())) place->named = true;
  }
  ::closedir(folder);
}

int note_sync(int fd, int result) {
  State& all = state();
  if (result != 0 || all.synced == nullptr || all.pid != ::getpid() || !below(fd)) return result;
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  if (::readlink(link.data(), path.data(), path.size() - 1) <= 0) return result;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return result;
  if (S_ISDIR(status.st_mode)) {
    note_names(path.data());
  } else if (Synced::Place* place = place_of(path.data())) {
    place->size = static_cast<long>(status.st_size);
    place->named = true;
  }
  return result;
}

}  // namespace

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "no fault";
    case Fault::killed:
      return "killed";
    case Fault::full:
      return "disk full";
    case Fault::broken:
      return "I/O error";
    case Fault::read_only:
      return "read-only";
  }
  return "";
}

void arm(Fault fault, long at_call, const std::string& folder) {
  State& all = state();
  std::strncpy(all.folder.data(), folder.c_str(), all.folder.size() - 1);
  all.count = 0;
  all.at = at_call;
  all.fault = fault;
  all.pid = ::getpid();
}

void watch_syncs(Synced* synced) {
  state().synced = synced;
}

long calls() {
  return state().count;
}

void shift_clock(long seconds) {
  state().clock_shift = seconds;
}

}  // namespace trainyard::faults

using namespace trainyard::faults;

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
  const auto half = [&] { return next(fd, bytes, size / 2); };
  ssize_t taken = 0;
  if (!fails(fd, half)) return next(fd, bytes, size);
  return takes_half(taken, half) ? taken : -1;
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t place) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  const auto half = [&] { return next(fd, bytes, size / 2, place); };
  ssize_t taken = 0;
  if (!fails(fd, half)) return next(fd, bytes, size, place);
  return takes_half(taken, half) ? taken : -1;
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t place) {
  return pwrite64(fd, bytes, size, place);
}

int fsync(int fd) {
  static auto* const next = real<int(int)>("fsync");
  return fails(fd, nothing) ? -1 : note_sync(fd, next(fd));
}

int fdatasync(int fd) {
  static auto* const next = real<int(int)>("fdatasync");
  return fails(fd, nothing) ? -1 : note_sync(fd, next(fd));
}

int ftruncate64(int fd, off64_t size) noexcept {
  static auto* const next = real<int(int, off64_t)>("ftruncate64");
  return fails(fd, nothing) ? -1 : next(fd, size);
}

int ftruncate(int fd, off_t size) noexcept {
  return ftruncate64(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  return fails(to, nothing) ? -1 : next(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  return fails(path, nothing) ? -1 : next(path, mode);
}

int unlink(const char* path) noexcept {
  static auto* const next = real<int(const char*)>("unlink");
  return fails(path, nothing) ? -1 : next(path);
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto* const next = real<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += state().clock_shift;
  return result;
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
