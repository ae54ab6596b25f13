#include "tests/runner/communicator/transports.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "runner/communicator/gloo_communicator.h"
#include "runner/communicator/process_groups.h"
#include "runner/communicator/shared_memory_communicator.h"
#include "runner/device/rank_process.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::testing {

namespace {

// Copies all tensors, as for a GPU.
std::unique_ptr<Communicator> copied(const Store& store, const std::string& name, const GroupOptions& group) {
  return host_copies(gloo_communicator(store, name, group), at::kCPU);
}

// Gloo groups in a chain of ranks, used as NCCL groups are.
std::unique_ptr<Communicator> grouped(const Store& store, const std::string& name,
                                      const GroupOptions& group) {
  GroupOptions ranks = group;
  ranks.chain = true;
  const auto make = [store, timeout = ranks.timeout](const GroupPlace& place) -> DeviceGroup {
    using Gloo = c10d::ProcessGroupGloo;
    ignore_broken_pipes();
    auto options = Gloo::Options::create(timeout);
    options->devices.push_back(Gloo::createDeviceForHostname("127.0.0.1"));
    return c10::make_intrusive<Gloo>(c10::make_intrusive<c10d::PrefixStore>(place.name, store), place.rank,
                                     place.size, options);
  };
  return device_groups(name, ranks, at::kCPU, shared_memory_communicator(store, name, ranks), "groups", make);
}

}  // namespace

const std::array<Transport, 4> transports{{{"gloo", gloo_communicator},
                                           {"shared memory", shared_memory_communicator},
                                           {"host copies", copied},
                                           {"groups", grouped}}};

const Transport& transport_named(const std::string& name) {
  const auto found =
      std::find_if(transports.begin(), transports.end(), [&](const auto& each) { return each.name == name; });
  REQUIRE(found != transports.end());
  return *found;
}

std::vector<std::string> errors_of(const Transport& transport, int size, const Rank& rank,
                                   std::chrono::milliseconds timeout) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      try {
        const auto communicator = transport.meet(store, "test", {r, size, true, timeout});
        rank(*communicator);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(r)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void run(const Transport& transport, int size, const Rank& rank) {
  CAPTURE(transport.name);
  CAPTURE(size);
  const Rank and_stay = [&](Communicator& communicator) {
    rank(communicator);
    communicator.barrier();  // a rank that leaves early would break the rendezvous of the others
  };
  for (const std::string& error : errors_of(transport, size, and_stay)) CHECK(error == "");
}

}  // namespace trainyard::runner::testing
