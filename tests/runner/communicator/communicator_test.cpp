// All transports behave the same: sums equal those of one process, messages match by tag, lost peers are
// errors.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <ATen/ATen.h>

#include "tests/runner/communicator/transports.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner {
namespace {

using namespace testing;

// Numbers whose sums are exact in every type.
at::Tensor numbers_of(int rank, std::int64_t count, at::ScalarType dtype) {
  return (at::arange(count) * (rank + 1) % 13).to(dtype);
}

at::Tensor sum_of(int ranks, std::int64_t count, at::ScalarType dtype) {
  at::Tensor sum = at::zeros({count}, dtype);
  for (int r = 0; r < ranks; ++r) sum += numbers_of(r, count, dtype);
  return sum;
}

TEST_CASE("an all-reduce gives every rank the sum, for any size, type and number of ranks") {
  for (const Transport& transport : transports) {
    for (const int size : {2, 3, 5}) {
      run(transport, size, [&](Communicator& communicator) {
        for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kLong}) {
          for (const std::int64_t count : {1, 63, 64, 129, 100'003}) {
            const at::Tensor own = numbers_of(communicator.rank(), count, dtype);
            communicator.all_reduce(own)->wait();
            expect(own.equal(sum_of(size, count, dtype)), "sum of " + std::to_string(count));
          }
        }
      });
    }
  }
}

TEST_CASE("all ranks learn whether a condition holds on all of them") {
  for (const Transport& transport : transports) {
    run(transport, 3, [](Communicator& communicator) {
      expect(holds_on_all(communicator, true), "on all");
      for (int other = 0; other < 3; ++other)
        expect(!holds_on_all(communicator, communicator.rank() != other), "on all but one");
      expect(!holds_on_all(communicator, false), "on none");
    });
  }
}

TEST_CASE("memory of the communicator is reduced in place, with any number of buckets at a time") {
  for (const Transport& transport : transports) {
    run(transport, 3, [](Communicator& communicator) {
      std::vector<at::Tensor> buckets;
      for (int b = 0; b < 40; ++b) buckets.push_back(communicator.allocate(1000 + b, at::kFloat));
      for (int step = 0; step < 50; ++step) {
        std::vector<std::unique_ptr<Communicator::Work>> works;
        for (const at::Tensor& bucket : buckets) {
          bucket.copy_(numbers_of(communicator.rank() + step, bucket.numel(), at::kFloat));
          works.push_back(communicator.all_reduce(bucket));
        }
        for (const auto& work : works) work->wait();
        for (const at::Tensor& bucket : buckets) {
          at::Tensor sum = at::zeros_like(bucket);
          for (int r = 0; r < 3; ++r) sum += numbers_of(r + step, bucket.numel(), at::kFloat);
          expect(bucket.equal(sum), "step " + std::to_string(step));
        }
      }
    });
  }
}

TEST_CASE("shared memory sums in the order of ranks, so all ranks have the same bits") {
  run(transports[1], 3, [](Communicator& communicator) {
    const auto noise = [](int rank) {
      return (at::arange(5000, at::kFloat) * (0.1F + static_cast<float>(rank))).sin();
    };
    const at::Tensor own = noise(communicator.rank());
    communicator.all_reduce(own)->wait();
    expect(own.equal((noise(0) + noise(1)) + noise(2)), "sum in order");
  });
}

TEST_CASE("a broadcast gives all ranks the root's numbers, and its memory can be reused at once") {
  for (const Transport& transport : transports) {
    run(transport, 4, [](Communicator& communicator) {
      for (int root = 0; root < 4; ++root) {
        for (int again = 0; again < 20; ++again) {
          const at::Tensor own = at::full({777}, communicator.rank() * 100 + again, at::kLong);
          communicator.broadcast(own, root);
          expect(own.eq(root * 100 + again).all().item<bool>(), "broadcast");
          own.fill_(-1);
        }
      }
    });
  }
}

TEST_CASE("no rank leaves a barrier before all ranks have entered it") {
  for (const Transport& transport : transports) {
    std::atomic<int> come = 0;
    run(transport, 4, [&](Communicator& communicator) {
      for (int round = 1; round <= 50; ++round) {
        ++come;
        communicator.barrier();
        expect(come >= 4 * round, "barrier");
        communicator.barrier();
      }
    });
  }
}

TEST_CASE("the callbacks of asynchronous barriers run once and in order, after all ranks have arrived") {
  std::atomic<int> come = 0;
  run(transport_named("shared memory"), 3, [&](Communicator& communicator) {
    SharedMemoryFeatures& shared = *communicator.shared_memory();
    for (int round = 1; round <= 50; ++round) {
      std::vector<int> done;
      const at::Tensor one = at::ones({5});
      const auto first_to_be_done = [&] {
        expect(come >= 3 * round, "done before all had come");
        done.push_back(1);
      };
      ++come;
      const auto first = shared.async_barrier(first_to_be_done);
      const auto second = shared.async_barrier([&] { done.push_back(2); });
      communicator.all_reduce(one)->wait();
      first->wait();
      second->wait();
      expect(done == std::vector{1, 2}, "not once, or not in turn");
      expect(one.eq(3).all().item<bool>(), "sum");
    }
  });
}

// Rank 1 comes 20 ms after rank 0. A busy machine may delay either rank, but not in every round.
TEST_CASE("in shared memory a rank measures how long it waited for the last rank") {
  using Clock = std::chrono::steady_clock;
  for (const Transport& transport : transports) {
    CAPTURE(transport.name);
    std::atomic<int> called = 0;  // the rounds that rank 0 has begun
    std::array<std::vector<std::optional<double>>, 2> waited;
    run(transport, 2, [&](Communicator& communicator) {
      communicator.barrier();
      take_straggler_seconds(communicator);
      for (int round = 1; round <= 5; ++round) {
        if (communicator.rank() == 0) called = round;
        while (called < round) std::this_thread::yield();
        if (communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const auto begin = Clock::now();
        communicator.barrier();
        const std::chrono::duration<double> inside = Clock::now() - begin;
        const auto seconds = take_straggler_seconds(communicator);
        expect(seconds.value_or(0) <= inside.count(), "longer than it was there");
        waited[static_cast<std::size_t>(communicator.rank())].push_back(seconds);
      }
      expect(take_straggler_seconds(communicator).value_or(0) == 0, "counted twice");
    });
    const bool measured = &transport == &transports[1];
    for (const auto& of_rank : waited)
      for (const auto& seconds : of_rank) CHECK(seconds.has_value() == measured);
    if (!measured) continue;
    CHECK(std::ranges::max(waited[0]) > 0.01);
    CHECK(std::ranges::min(waited[1]) == 0);
  }
}

TEST_CASE("messages match receives by tag, in order for each tag, during collective calls") {
  for (const Transport& transport : transports) {
    run(transport, 2, [](Communicator& communicator) {
      const int peer = 1 - communicator.rank();
      constexpr int messages = 100;
      std::vector<at::Tensor> received;
      std::vector<std::unique_ptr<Communicator::Work>> works;
      for (int i = 0; i < messages; ++i) received.push_back(at::empty({50 + i % 2}, at::kLong));
      for (int i = 0; i < messages; ++i)
        works.push_back(communicator.receive(received[static_cast<std::size_t>(i)], peer, i % 2));
      // Those of tag 1 first.
      for (const int tag : {1, 0})
        for (int i = tag; i < messages; i += 2)
          works.push_back(communicator.send(at::full({50 + tag}, i, at::kLong), peer, tag));
      const at::Tensor sum = at::ones({10});
      communicator.all_reduce(sum)->wait();
      expect(sum.eq(2).all().item<bool>(), "sum");
      for (auto work = works.rbegin(); work != works.rend(); ++work) (*work)->wait();
      for (int i = 0; i < messages; ++i)
        expect(received[static_cast<std::size_t>(i)].eq(i).all().item<bool>(),
               "message " + std::to_string(i));
    });
  }
}

TEST_CASE("if all message slots are in use, a sender waits until the receiver has read some") {
  run(transports[1], 2, [](Communicator& communicator) {
    for (int i = 0; i < 1000; ++i) {
      const at::Tensor tensor = at::full({3}, i, at::kLong);
      if (communicator.rank() == 0)
        communicator.send(tensor, 1, 0)->wait();
      else
        communicator.receive(tensor.zero_(), 0, 0)->wait();
      expect(tensor.eq(i).all().item<bool>(), "message " + std::to_string(i));
    }
  });
}

// Slots are freed out of order and used again while the receiver still checks earlier ones.
// The sender always waits for slots, and the receiver takes the last message of each group first.
TEST_CASE("a sender that is far ahead works with a receiver of another order") {
  constexpr int groups = 20'000;
  run(transports[1], 2, [](Communicator& ranks) {
    const at::Tensor number = at::zeros({1}, at::kLong);
    auto& value = *number.mutable_data_ptr<std::int64_t>();
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (int i = 0; i < groups; ++i) {
      for (const int tag : {0, 1}) {
        value = i;
        if (ranks.rank() == 0)
          ranks.send(number, 1, tag)->wait();
        else
          ranks.receive(number, 0, 1 - tag)->wait();
        expect(value == i, "another number");
      }
    }
  });
}

TEST_CASE("a rank receives from any other rank, each message once, beside messages with other tags") {
  for (const Transport& transport : transports) {
    CAPTURE(transport.name);
    if (transport.name == std::string("groups")) continue;  // messages only between neighbours
    run(transport, 4, [](Communicator& ranks) {
      constexpr int from_any = 0, other_tag = 1, messages = 50;
      const at::Tensor number = at::zeros({1}, at::kLong);
      if (ranks.rank() > 0) {
        for (int i = 0; i < messages; ++i) {
          number.fill_(100 * ranks.rank() + i);
          ranks.send(number, 0, from_any)->wait();
          ranks.receive(number, 0, other_tag)->wait();
          expect(number.item<std::int64_t>() == i, "the answer");
        }
        return;
      }
      std::array<std::int64_t, 4> next{};
      for (int i = 0; i < 3 * messages; ++i) {
        const int from = ranks.receive_from_any(number, from_any);
        std::int64_t& expected = next.at(static_cast<std::size_t>(from));
        expect(number.item<std::int64_t>() == 100 * from + expected, "the message in its order");
        number.fill_(expected++);
        ranks.send(number, from, other_tag)->wait();
      }
    });
  }
}

TEST_CASE("a rank that waits for any other rank gets an error if one is lost") {
  for (const char* name : {"shared memory", "gloo"}) {
    const auto wait = [](Communicator& ranks) {
      ranks.barrier();
      if (ranks.rank() == 1) throw std::runtime_error("gone");
      if (ranks.rank() == 0) ranks.receive_from_any(at::zeros({1}), 0);
    };
    const auto errors = errors_of(transport_named(name), 3, wait, std::chrono::seconds(10));
    CHECK(errors[0].find("receiving a message failed") != std::string::npos);
  }
}

TEST_CASE("ranks that wait for a lost rank get an error") {
  for (const Transport& transport : transports) {
    CAPTURE(transport.name);
    const auto errors = errors_of(transport, 3, [](Communicator& communicator) {
      const at::Tensor tensor = at::ones({100});
      communicator.all_reduce(tensor)->wait();
      if (communicator.rank() == 1) throw std::runtime_error("gone");
      communicator.all_reduce(tensor)->wait();
    });
    CHECK(errors[1] == "gone");
    for (const std::size_t r : {0U, 2U}) CHECK(errors[r].find("all-reduce failed") != std::string::npos);
  }
}

TEST_CASE("ranks that exchange different tensors get an error") {
  const auto errors = errors_of(transports[1], 2, [](Communicator& communicator) {
    communicator.all_reduce(at::ones({10 + communicator.rank()}))->wait();
  });
  CHECK(errors[0].find("exchange different tensors") != std::string::npos);
  CHECK(errors[1].find("exchange different tensors") != std::string::npos);
}

TEST_CASE(
    "all ranks see what one rank writes to shared memory, which exists only in the shared-memory transport") {
  for (const Transport& transport : transports) {
    run(transport, 3, [&](Communicator& communicator) {
      for (int again = 0; again < 3; ++again) {
        SharedMemoryFeatures* const shared = communicator.shared_memory();
        expect((shared != nullptr) == (&transport == &transports[1]), "shared");
        if (!shared) return;
        const at::Tensor all = shared->allocate_shared(300, at::kLong);
        expect(all.eq(0).all().item<bool>(), "zeros");
        communicator.barrier();
        all.slice(0, 100L * communicator.rank(), 100L * (communicator.rank() + 1)).fill_(again + 1);
        communicator.barrier();
        expect(all.eq(again + 1).all().item<bool>(), "what the others wrote");
      }
    });
  }
}

TEST_CASE("a tensor in the communicator's memory outlives the communicator") {
  at::Tensor kept;
  run(transports[1], 2, [&](Communicator& communicator) {
    const at::Tensor own = communicator.allocate(10, at::kFloat).fill_(3);
    communicator.all_reduce(own)->wait();
    if (communicator.rank() == 0) kept = own;
  });
  CHECK(kept.eq(6).all().item<bool>());
}

}  // namespace
}  // namespace trainyard::runner
