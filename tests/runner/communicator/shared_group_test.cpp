// Ranks that wait in shared memory at the moment when a peer leaves or the time is over.
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <unistd.h>

#include "runner/communicator/communicator.h"
#include "runner/communicator/shared_memory.h"
#include "tests/runner/communicator/transports.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard::runner;
using namespace trainyard::runner::testing;

using Ranks = std::array<std::unique_ptr<SharedGroup>, 2>;

Ranks two_ranks(std::chrono::milliseconds timeout) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  Ranks ranks;
  std::thread other([&] { ranks[1] = SharedGroup::meet(store, "test", {1, 2, true, timeout}); });
  ranks[0] = SharedGroup::meet(store, "test", {0, 2, true, timeout});
  other.join();
  for (const auto& rank : ranks) REQUIRE(rank);
  return ranks;
}

// Linux on Arm has pages of 4, 16 or 64 KiB.
TEST_CASE("the data of each rank begins on a page and has room for the host's memory, for any page size") {
  constexpr std::size_t kibibyte = 1024, gibibyte = kibibyte * kibibyte * kibibyte;
  for (const std::size_t page : {4 * kibibyte, 16 * kibibyte, 64 * kibibyte}) {
    for (const int ranks : {1, 2, 3, 16}) {
      CAPTURE(page);
      CAPTURE(ranks);
      const auto places = SharedGroup::places_of(ranks, {.bytes = page, .count = 8 * gibibyte / page});
      CHECK(places.parts % page == 0);
      CHECK(places.part_bytes == 8 * gibibyte);
      CHECK(places.part_bytes % page == 0);
      CHECK(places.bytes == places.parts + static_cast<std::size_t>(ranks) * 8 * gibibyte);
      CHECK(places.states % 64 == 0);
      CHECK(places.contributions % 64 == 0);
      CHECK(places.messages % alignof(Message) == 0);
      const auto count = static_cast<std::size_t>(ranks);
      CHECK(places.parts >= places.messages + count * count * messages_under_way * sizeof(Message));
    }
  }
}

TEST_CASE("only sealed memory of the expected size is opened, never a file that a key names") {
  SharedMemory memory(4096);
  memory.data()[7] = std::byte{42};
  const SharedMemory other(memory.descriptor(), 4096);
  CHECK(other.data()[7] == std::byte{42});
  CHECK_THROWS_AS(SharedMemory(memory.descriptor(), 8192), std::system_error);
  const auto file = std::filesystem::temp_directory_path() / ("trainyard-file-" + std::to_string(::getpid()));
  std::ofstream(file) << std::string(4096, 'x');
  CHECK_THROWS_AS(SharedMemory(file.string(), 4096), std::system_error);
  std::ifstream in(file);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == std::string(4096, 'x'));
  std::filesystem::remove(file);
}

TEST_CASE("the page size is that of the system, and the shared memory of ranks is laid out by it") {
  const Pages pages = pages_of_host();
  CHECK(pages.bytes == static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  const Ranks ranks = two_ranks(std::chrono::seconds(60));
  for (int r = 0; r < 2; ++r)
    CHECK(reinterpret_cast<std::uintptr_t>(ranks[0]->data(r, 0)) % pages.bytes == 0);
  CHECK(ranks[0]->memory()->size() == SharedGroup::places_of(2, pages).bytes);
}

// A waiting rank polls: first without pauses, and later it also checks that the other rank still exists.
TEST_CASE("a rank that does its part and leaves right after a poll has not left without its part") {
  for (const int last :
       {1, SharedGroup::spin_limit, SharedGroup::spin_limit + 1, SharedGroup::spin_limit + 3}) {
    CAPTURE(last);
    Ranks ranks = two_ranks(std::chrono::seconds(60));
    int polls = 0;
    const auto missing = [&]() -> std::optional<int> {
      if (!ranks[1]) return std::nullopt;
      if (++polls == last) ranks[1].reset();
      return 1;
    };
    CHECK_NOTHROW(ranks[0]->wait("a test", missing));
  }
}

TEST_CASE(
    "if the waiting rank is delayed past the time limit, a rank that came meanwhile counts as in time") {
  for (const int last : {1, SharedGroup::spin_limit, SharedGroup::spin_limit + 1}) {
    CAPTURE(last);
    const Ranks ranks = two_ranks(std::chrono::milliseconds(20));
    int polls = 0;
    const auto missing = [&]() -> std::optional<int> {
      if (polls++ >= last) return std::nullopt;
      if (polls == last) std::this_thread::sleep_for(std::chrono::milliseconds(40));
      return 1;
    };
    CHECK_NOTHROW(ranks[0]->wait("a test", missing));
  }
}

TEST_CASE("the error names a rank that left without its part or never comes") {
  Ranks ranks = two_ranks(std::chrono::milliseconds(20));
  const auto never = []() -> std::optional<int> { return 1; };
  CHECK_THROWS_WITH_AS(ranks[0]->wait("a test", never),
                       "rank 0: a test failed: rank 1 did not answer in time", CommunicationError);
  ranks[1].reset();
  CHECK_THROWS_WITH_AS(ranks[0]->wait("a test", never), "rank 0: a test failed: rank 1 has left",
                       CommunicationError);
}

TEST_CASE("the error names a rank that does not come within the time limit") {
  struct CountDown {
    std::latch& latch;
    ~CountDown() { latch.count_down(); }
  };
  std::latch given_up(1);
  const auto errors = errors_of(
      transport_named("shared memory"), 2,
      [&](Communicator& communicator) {
        if (communicator.rank() == 1) return given_up.wait();
        const CountDown at_its_end{given_up};
        communicator.barrier();
      },
      std::chrono::milliseconds(100));
  CHECK(errors[0] == "rank 0: barrier failed: rank 1 did not answer in time");
}

}  // namespace
