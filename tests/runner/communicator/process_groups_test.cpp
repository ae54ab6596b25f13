// Process groups without tags as a communicator. NCCL groups are used this way, and the test uses Gloo
// groups.
#include "runner/communicator/process_groups.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "tests/runner/communicator/transports.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner {
namespace {

using namespace testing;

// Each number goes up the chain and comes back, in both directions at once.
TEST_CASE("ranks of a chain pass messages on in both directions, and can reach only their neighbours") {
  run(transport_named("groups"), 4, [](Communicator& ranks) {
    const int rank = ranks.rank(), last = ranks.size() - 1;
    std::vector<std::unique_ptr<Communicator::Work>> works;
    const auto hop = [&](int from, int to, double first) {
      const at::Tensor number = at::full({5}, first);
      if (from >= 0 && from <= last) ranks.receive(number, from, 0)->wait();
      const at::Tensor next = number + 1;
      if (to >= 0 && to <= last) works.push_back(ranks.send(next, to, 0));
      return number[0].item<double>();
    };
    expect(hop(rank - 1, rank + 1, 100) == 100 + rank, "up");
    expect(hop(rank + 1, rank - 1, 200) == 200 + last - rank, "down");
    for (const auto& work : works) work->wait();
    if (rank > 0) return;
    try {
      ranks.send(at::ones({1}), 2, 0);
    } catch (const InternalError& error) {
      expect(std::string(error.what()) == "ranks 0 and 2 are not neighbours of a chain", error.what());
      return;
    }
    throw std::runtime_error("a message to a rank that is not a neighbour");
  });
}

// Without new groups, the call of rank 0 alone would be matched with the next call of the others.
TEST_CASE("after renew, ranks are not affected by a call that only one of them had begun") {
  run(transport_named("groups"), 3, [](Communicator& ranks) {
    const at::Tensor begun = at::full({4}, 100.0), sum = at::ones({4});
    const auto work = ranks.rank() == 0 ? ranks.all_reduce(begun) : nullptr;
    ranks.renew();
    ranks.all_reduce(sum)->wait();
    expect(sum.eq(3).all().item<bool>(), "the sum over all ranks");
  });
}

}  // namespace
}  // namespace trainyard::runner
