#include "runner/nccl_communicator.h"

#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <nccl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "models/error.h"
#include "runner/c10d_work.h"

namespace trainyard::runner {

namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;
using Work = Communicator::Work;

// Connects in its first collective call.
Group made(const Store& store, const std::string& name, int rank, int size, const RankGroup& ranks) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = ranks.timeout;
  options->group_name = name;  // for its messages
  options->global_ranks_in_group.resize(static_cast<std::size_t>(size));
  std::iota(options->global_ranks_in_group.begin(), options->global_ranks_in_group.end(), 0);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>(name, store),
                                                     rank, size, options);
}

// Connects at once: what fails then fails before training, and no rank has to wait in its first send for a
// peer that waits elsewhere.
Group connected(const Store& store, const std::string& name, int rank, int size, const RankGroup& ranks,
                at::Device device) {
  Group group = made(store, name, rank, size, ranks);
  group->eagerConnectSingleDevice(device);
  return group;
}

// The directions in which neighbours of a chain talk, by rank and rank. In each group the sender is rank 0.
constexpr int sender = 0, receiver = 1;
using Links = std::map<std::pair<int, int>, Group>;

// Lower pairs first, so that the ranks connect one after the other along the chain.
Links links_of(const Store& store, const std::string& name, const RankGroup& group, at::Device device) {
  Links links;
  for (const int lower : {group.rank - 1, group.rank}) {
    if (lower < 0 || lower + 1 >= group.size) continue;
    for (const auto& [from, to] : {std::pair(lower, lower + 1), std::pair(lower + 1, lower)}) {
      const std::string link = name + "/" + std::to_string(from) + " to " + std::to_string(to);
      links[{from, to}] = connected(store, link, from == group.rank ? sender : receiver, 2, group, device);
    }
  }
  return links;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const Store& store, const std::string& name, const RankGroup& group, at::Device device,
                   std::unique_ptr<Communicator> host)
      : host_(std::move(host)),
        device_(device),
        all_(made(store, name + "/all", group.rank, group.size, group)) {
    if (group.chain)  // which may never make a collective call
      links_ = links_of(store, name, group, device);
    else
      all_->eagerConnectSingleDevice(device);
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  const char* transport() const override { return "nccl"; }
  at::Device device() const override { return device_; }
  bool in_order() const override { return true; }

  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    if (tensor.is_cpu()) return host_->all_reduce(tensor);
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "all-reduce", [&] { return all_->allreduce(tensors); });
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    if (tensor.is_cpu()) return host_->send(tensor, to, tag);
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "sending to a stage",
                      [&] { return link(rank(), to)->send(tensors, receiver, tag); });
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    if (tensor.is_cpu()) return host_->receive(tensor, from, tag);
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "receiving from a stage",
                      [&] { return link(from, rank())->recv(tensors, sender, tag); });
  }
  // On the current stream.
  void broadcast(const at::Tensor& tensor, int root) override {
    if (tensor.is_cpu()) return host_->broadcast(tensor, root);
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.asyncOp = false;
    guarded(rank(), "broadcast", [&] { all_->broadcast(tensors, options); });
  }
  void barrier() override { host_->barrier(); }

 private:
  const Group& link(int from, int to) const {
    const auto found = links_.find({from, to});
    if (found == links_.end())
      throw InternalError("ranks " + std::to_string(from) + " and " + std::to_string(to) +
                          " are no neighbours of a chain");
    return found->second;
  }

  std::unique_ptr<Communicator> host_;
  at::Device device_;
  Group all_;
  Links links_;
};

}  // namespace

std::unique_ptr<Communicator> nccl_communicator(const Store& store, const std::string& name,
                                                const RankGroup& group, at::Device device,
                                                std::unique_ptr<Communicator> host) {
  return guarded(group.rank, "the rendezvous of GPUs", [&]() -> std::unique_ptr<Communicator> {
    return std::make_unique<NcclCommunicator>(store, name, group, device, std::move(host));
  });
}

std::string nccl_version() {
  int code = 0;
  return ncclGetVersion(&code) == ncclSuccess ? nccl_version_text(code) : "";
}

}  // namespace trainyard::runner
