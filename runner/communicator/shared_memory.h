// Memory shared by the ranks of one host, and waiting for other ranks in it. The memory has no name in a file
// system, so nothing is left if ranks are killed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// The memory of a host, in pages.
struct Pages {
  std::size_t bytes = 0;  // per page
  std::size_t count = 0;
};
Pages pages_of_host();

// Shared memory, filled with zeros. Pages are allocated on first use, so the size is only a limit.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);  // new, and sealed: its size cannot change
  // The memory of another rank. A file that such a rank did not make is refused: the path comes from a store.
  // Both: std::system_error.
  SharedMemory(const std::string& descriptor, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  // Path by which other processes of this user open it while this object lives: "/proc/4711/fd/5".
  std::string descriptor() const;

 private:
  void map();

  FileDescriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Event in shared memory. A rank rings it after each change that other ranks wait for.
class FutexEvent {
 public:
  void ring();
  std::uint32_t rings() const { return rings_.load(); }
  // Returns when it has rung since `rings` was read, or after `patience`.
  void wait(std::uint32_t rings, std::chrono::milliseconds patience);

 private:
  std::atomic<std::uint32_t> rings_;
  std::atomic<std::uint32_t> sleepers_;
};

// The processes of a group. A rank checks here that the process it waits for still runs.
class Peers {
 public:
  explicit Peers(const std::vector<int>& pids);
  bool has_ended(int rank) const;

 private:
  std::vector<FileDescriptor> descriptors_;  // one per process, empty if it cannot be watched
};

// Layout of the shared memory of a communicator:
// - an event and the states of all ranks
// - the contributions to the collectives in progress
// - the messages between each pair of ranks
// - one part per rank for its data
// Everything is zero at first. Only a rank itself writes its state, contributions, data and sent messages. A
// receiver only marks a message as taken.

enum class Collective : std::int32_t { none, all_reduce, broadcast, barrier, async_barrier };

// Contribution of one rank to a collective.
struct Contribution {
  Collective kind = Collective::none;
  std::int32_t dtype = 0;
  std::int64_t count = 0;    // number of values
  std::uint64_t offset = 0;  // in the rank's part of the memory
  bool same_shape(const Contribution& other) const {
    return kind == other.kind && dtype == other.dtype && count == other.count;
  }
};

struct Message {
  std::atomic<std::uint64_t> sent;   // number of the message, from 1; set when it can be read
  std::atomic<std::uint64_t> taken;  // number of the message that was read last
  std::int64_t tag;
  std::uint64_t offset;  // in the sender's part of the memory
  std::uint64_t bytes;
};

inline constexpr std::uint64_t collectives_under_way = 1024;
inline constexpr std::uint64_t messages_under_way = 256;

// Allocator for the blocks of a rank's part of the memory.
class ArenaAllocator {
 public:
  explicit ArenaAllocator(std::size_t capacity) : capacity_(capacity) {}
  // The offset of a new block, a multiple of 64. std::bad_alloc if the memory is full.
  std::uint64_t take(std::size_t bytes);
  void give_back(std::uint64_t offset);

 private:
  std::size_t capacity_;
  std::uint64_t end_ = 0;
  std::map<std::uint64_t, std::size_t> used_;       // offset → bytes
  std::multimap<std::size_t, std::uint64_t> free_;  // bytes → offset
};

class SharedGroup {
 public:
  // Offsets of the parts of the memory, in bytes. The data of each rank begins on its own page. A page has
  // 4 KiB on most processors, and 16 or 64 KiB on some Arm processors.
  struct Places {
    std::size_t states = 0;  // after the event
    std::size_t contributions = 0;
    std::size_t messages = 0;
    std::size_t parts = 0;       // data, one part per rank
    std::size_t part_bytes = 0;  // the memory of the host, as an upper limit
    std::size_t bytes = 0;
  };
  static Places places_of(int group_size, const Pages& pages);

  // Rendezvous through `store` under the prefix `name`. Null on all ranks if they cannot share memory.
  static std::unique_ptr<SharedGroup> meet(const Store& store, const std::string& name,
                                           const GroupOptions& group);
  ~SharedGroup();
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  int rank() const { return group_.rank; }
  int size() const { return group_.size; }

  // Number of the last collective that a rank has begun and done. Collectives are numbered from 1.
  // - `begun`: the rank has stored its contribution.
  // - `done`: the rank has done its part, and no longer reads the data of other ranks.
  std::atomic<std::uint64_t>& begun(int rank) const { return states_[rank].begun; }
  std::atomic<std::uint64_t>& done(int rank) const { return states_[rank].done; }
  Contribution& contribution(int rank, std::uint64_t number) const;
  Message& message(int from, int to, std::uint64_t number) const;
  std::optional<int> lost_rank() const;  // the first that has left or ended

  std::byte* data(int rank, std::uint64_t offset) const;
  // The offset of `address` in this rank's part. Empty if it is elsewhere.
  std::optional<std::uint64_t> own_offset(const void* address, std::size_t bytes) const;
  ArenaAllocator& blocks() { return blocks_; }
  const std::shared_ptr<SharedMemory>& memory() const { return memory_; }

  void ring() const { event_->ring(); }
  // Some ten microseconds, then the thread sleeps. With longer spinning, the host of a virtual machine placed its
  // cores apart more often.
  static constexpr int spin_limit = 2000;
  // Calls `missing` until it returns no rank. `operation` is the operation that waits, for errors.
  // CommunicationError if the missing rank has left or ended, or does not answer in time.
  void wait(const char* operation, const std::function<std::optional<int>()>& missing) const;

 private:
  struct alignas(64) State {
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> done;
    std::atomic<std::uint32_t> has_quit;
  };

  SharedGroup(const GroupOptions& group, std::shared_ptr<SharedMemory> memory, const std::vector<int>& pids);
  // Null if the rank may still do its part.
  const char* failure_of(int rank, std::chrono::steady_clock::time_point waited_since) const;
  [[noreturn]] void give_up(const char* operation, int missing, const char* why) const;

  GroupOptions group_;
  std::shared_ptr<SharedMemory> memory_;
  FutexEvent* event_;
  State* states_;
  Contribution* contributions_;
  Message* messages_;
  std::byte* parts_;
  std::size_t part_bytes_;
  ArenaAllocator blocks_;
  Peers peers_;
};

}  // namespace trainyard::runner
