// Memory that the ranks of one host share, and how they wait for one another in it. It has no name in any
// file system: whatever is killed, nothing of it stays.
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
  std::size_t bytes = 0;  // of one
  std::size_t count = 0;
};
Pages pages_of_host();

// Zeros at first; a page is taken when it is first touched, so that a size is only a limit.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);                        // new
  SharedMemory(const std::string& descriptor, std::size_t bytes);  // another rank's, by its `descriptor`
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  // "/proc/4711/fd/5": where other processes of this user open it, while this object lives.
  std::string descriptor() const;

 private:
  void map();

  FileDescriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Lies in shared memory: who changes anything that others wait for rings it.
class FutexEvent {
 public:
  void ring();
  std::uint32_t rings() const { return rings_.load(); }
  // Returns when it has rung since `rings` was read, or soon after `patience`.
  void wait(std::uint32_t rings, std::chrono::milliseconds patience);

 private:
  std::atomic<std::uint32_t> rings_;
  std::atomic<std::uint32_t> sleepers_;
};

// The processes of a group, watched so that nobody waits for one that has gone.
class Peers {
 public:
  explicit Peers(const std::vector<int>& pids);
  bool has_ended(int rank) const;

 private:
  std::vector<FileDescriptor> descriptors_;  // of each process; empty if it cannot be watched
};

// What the ranks of a shared-memory communicator see of one another: a page of states, the contributions to
// the collectives under way, the messages from each to each, and a part of the memory for the data of each.
//
// Everything is zero at first and only its owner writes it: a rank its state, its contributions and the
// messages it sends; a receiver only marks a message as taken.

enum class Collective : std::int32_t { none, all_reduce, broadcast, barrier, async_barrier };

// What a rank brings to a collective.
struct Contribution {
  Collective kind = Collective::none;
  std::int32_t dtype = 0;
  std::int64_t count = 0;    // of numbers
  std::uint64_t offset = 0;  // in the rank's part of the memory
  bool same_shape(const Contribution& other) const {
    return kind == other.kind && dtype == other.dtype && count == other.count;
  }
};

struct Message {
  std::atomic<std::uint64_t> sent;   // its number, from 1, once it is there
  std::atomic<std::uint64_t> taken;  // the number that was read last
  std::int64_t tag;
  std::uint64_t offset;  // in the sender's part of the memory
  std::uint64_t bytes;
};

inline constexpr std::uint64_t collectives_under_way = 1024;
inline constexpr std::uint64_t messages_under_way = 256;

// The part of the memory that a rank writes, in blocks.
class ArenaAllocator {
 public:
  explicit ArenaAllocator(std::size_t capacity) : capacity_(capacity) {}
  std::uint64_t take(
      std::size_t bytes);  // its offset, a multiple of 64; std::bad_alloc where there is no room
  void give_back(std::uint64_t offset);

 private:
  std::size_t capacity_;
  std::uint64_t end_ = 0;
  std::map<std::uint64_t, std::size_t> used_;       // offset → bytes
  std::multimap<std::size_t, std::uint64_t> free_;  // bytes → offset
};

class SharedGroup {
 public:
  // Where the parts of the memory lie, in bytes from its begin. The data of each rank begins on a page of its
  // own, whatever a page is: 4 KiB on most processors, 16 or 64 KiB on some of Arm's.
  struct Places {
    std::size_t states = 0;  // the bell comes first
    std::size_t contributions = 0;
    std::size_t messages = 0;
    std::size_t parts = 0;       // of the data, one per rank
    std::size_t part_bytes = 0;  // as much as the host has: nobody can have more
    std::size_t bytes = 0;
  };
  static Places places_of(int group_size, const Pages& pages);

  // Meets the other ranks through `store`, under the prefix `name`. Nothing where the ranks do not see the
  // same memory; all ranks agree on that.
  static std::unique_ptr<SharedGroup> meet(const Store& store, const std::string& name,
                                           const GroupOptions& group);
  ~SharedGroup();
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  int rank() const { return group_.rank; }
  int size() const { return group_.size; }

  // Collectives are numbered from 1. `begun`: a rank has brought its contribution; `done`: it has done its
  // part, and reads no other's data of it any more.
  std::atomic<std::uint64_t>& begun(int rank) const { return states_[rank].begun; }
  std::atomic<std::uint64_t>& done(int rank) const { return states_[rank].done; }
  Contribution& contribution(int rank, std::uint64_t number) const;
  Message& message(int from, int to, std::uint64_t number) const;

  std::byte* data(int rank, std::uint64_t offset) const;
  std::optional<std::uint64_t> own_offset(const void* address,
                                          std::size_t bytes) const;  // where it is in our part
  ArenaAllocator& blocks() { return blocks_; }
  const std::shared_ptr<SharedMemory>& memory() const { return memory_; }

  void ring() const { bell_->ring(); }
  // Asks `missing` until it names no rank that is waited for. CommunicationError where that rank has left or
  // ended without what is waited for, or does not answer in time.
  static constexpr int quick_looks = 2000;  // some tens of microseconds; after that the core is for others
  void wait(const char* deed, const std::function<std::optional<int>()>& missing) const;

 private:
  struct alignas(64) State {
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> done;
    std::atomic<std::uint32_t> left;
  };

  SharedGroup(const GroupOptions& group, std::shared_ptr<SharedMemory> memory, const std::vector<int>& pids);
  // Nothing while there is hope.
  const char* why_it_will_not_come(int rank, std::chrono::steady_clock::time_point waited_since) const;
  [[noreturn]] void give_up(const char* deed, int missing, const char* why) const;

  GroupOptions group_;
  std::shared_ptr<SharedMemory> memory_;
  FutexEvent* bell_;
  State* states_;
  Contribution* contributions_;
  Message* messages_;
  std::byte* parts_;
  std::size_t part_bytes_;
  ArenaAllocator blocks_;
  Peers peers_;
};

}  // namespace trainyard::runner
