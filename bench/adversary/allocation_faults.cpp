// Library for LD_PRELOAD: lists the call stacks that allocate memory, or lets one of them fail once.
// `allocations.py` uses it. Only programs of the name in ALLOCATION_FAULTS_PROGRAM are affected.
//
// - ALLOCATION_FAULTS_TABLE: a file of zeros with the size of `Table`, shared by all processes.
// - ALLOCATION_FAULTS_STACK: 16 hexadecimal digits. The first allocation with this stack fails. Without it,
//   all stacks are listed in the table.
// - ALLOCATION_FAULTS_LASTING: if it is set, all later allocations fail too.
// - ALLOCATION_FAULTS_DEPTH: return addresses that distinguish two stacks.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

// glibc's own functions, which the replaced ones call.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

constexpr int most_frames = 32;
constexpr int most_stacks = 1 << 15;
constexpr int own_frames = 3;  // current_stack, fails and the replaced function

// The layout is also in allocations.py.
struct Stack {
  std::uint64_t hash;
  std::uint64_t count;
  std::uint64_t frames;
  std::uint64_t offsets[most_frames];  // from the begin of the program; 0 in a library
  char library[40];                    // the library that allocates; empty: the program itself
};
struct Table {
  std::atomic<std::uint64_t> failed;    // 1 after the chosen stack has failed
  std::atomic<std::uint64_t> overflow;  // stacks that had no room
  Stack stacks[most_stacks];
};

// Static, because a replaced C function has no other way to its state.
Table* table = nullptr;
std::uint64_t chosen = 0;
bool lasting = false;
int depth = most_frames;
__attribute__((tls_model("initial-exec"))) thread_local bool inside = false;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
  return hash * 0xbf58476d1ce4e5b9U;
}

std::uint64_t number_of(const char* text) {
  std::uint64_t hash = 7;
  for (; text != nullptr && *text != '\0'; ++text) hash = mixed(hash, static_cast<unsigned char>(*text));
  return hash;
}

// Addresses differ between two starts of a program. Offsets do not.
// Libraries that allocate for others.
bool is_of_everybody(const char* name) {
  for (const char* each : {"liballocation_faults", "libc.so", "libstdc++", "libgcc", "ld-linux"})
    if (std::strncmp(name, each, std::strlen(each)) == 0) return true;
  return false;
}

__attribute__((noinline)) Stack current_stack() {
  void* addresses[most_frames + own_frames];
  const int taken = ::backtrace(addresses, depth + own_frames);
  Stack stack{1, 1, 0, {}, {}};
  bool named = false;
  for (int i = own_frames - 1; i < taken; ++i) {
    dl_find_object object{};
    if (::_dl_find_object(addresses[i], &object) != 0) continue;
    const auto offset = static_cast<std::uint64_t>(static_cast<char*>(addresses[i]) -
                                                   static_cast<char*>(object.dlfo_map_start));
    const char* path = object.dlfo_link_map->l_name;
    const char* slash = std::strrchr(path, '/');
    const char* name = slash == nullptr ? path : slash + 1;
    stack.hash = mixed(mixed(stack.hash, number_of(name)), offset);
    if (stack.frames < most_frames) stack.offsets[stack.frames++] = *name == '\0' ? offset : 0;
    if (named || is_of_everybody(name)) continue;
    std::strncpy(stack.library, name, sizeof stack.library - 1);
    named = true;
  }
  return stack;
}

void note(const Stack& stack) {
  for (int tries = 0; tries < most_stacks; ++tries) {
    Stack& slot = table->stacks[(stack.hash + static_cast<std::uint64_t>(tries)) % most_stacks];
    if (slot.hash == stack.hash) {
      ++slot.count;
      return;
    }
    if (slot.hash == 0) {
      slot = stack;
      return;
    }
  }
  ++table->overflow;
}

// Whether this allocation must fail.
__attribute__((noinline)) bool fails() {
  if (table == nullptr || inside) return false;
  if (chosen != 0 && table->failed != 0) {
    if (lasting) errno = ENOMEM;
    return lasting;
  }
  inside = true;
  const int before = errno;
  const Stack stack = current_stack();
  bool now = false;
  if (chosen == 0)
    note(stack);
  else
    now = stack.hash == chosen && table->failed.exchange(1) == 0;
  inside = false;
  errno = now ? ENOMEM : before;
  return now;
}

__attribute__((constructor)) void begin() {
  const char* program = std::getenv("ALLOCATION_FAULTS_PROGRAM");
  const char* file = std::getenv("ALLOCATION_FAULTS_TABLE");
  if (program == nullptr || file == nullptr || std::strcmp(program, program_invocation_short_name) != 0)
    return;
  void* first[2];
  ::backtrace(first, 2);  // loads the unwinder, which allocates
  if (const char* frames = std::getenv("ALLOCATION_FAULTS_DEPTH"))
    depth = std::clamp(std::atoi(frames), 1, most_frames);
  lasting = std::getenv("ALLOCATION_FAULTS_LASTING") != nullptr;
  if (const char* stack = std::getenv("ALLOCATION_FAULTS_STACK")) chosen = std::strtoull(stack, nullptr, 16);
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* shared = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (shared != MAP_FAILED) table = static_cast<Table*>(shared);
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

void* malloc(std::size_t size) noexcept {
  return fails() ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  return fails() ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) noexcept {
  return fails() ? nullptr : __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (fails()) return ENOMEM;
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
