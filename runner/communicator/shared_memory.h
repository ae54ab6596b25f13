// Memory that the ranks of one host share, and how they wait for one another in it. It has no name in any
// file system: whatever is killed, nothing of it stays.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

  int file_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Lies in shared memory: who changes anything that others wait for rings it.
class Bell {
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
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  bool has_ended(int rank) const;

 private:
  std::vector<int> descriptors_;  // of each process; −1 where it cannot be watched
};

}  // namespace trainyard::runner
