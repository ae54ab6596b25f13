#include "runner/communicator/process_groups.h"

#include <map>
#include <utility>
#include <vector>

#include "base/error.h"

namespace trainyard::runner {

namespace {

// Groups for messages between neighbours of a chain, by sender and receiver. The sender has rank 0 in its
// group.
constexpr int sender = 0, receiver = 1;
using Links = std::map<std::pair<int, int>, DeviceGroup>;

// The pair with the lower rank comes first, so that the ranks connect one after the other along the chain.
// All groups connect now. If they connected in their first send, ranks could wait for each other in a circle.
Links links_of(const std::string& name, const GroupOptions& ranks, const MakeDeviceGroup& make) {
  Links links;
  for (const int lower : {ranks.rank - 1, ranks.rank}) {
    if (lower < 0 || lower + 1 >= ranks.size) continue;
    for (const auto& [from, to] : {std::pair(lower, lower + 1), std::pair(lower + 1, lower)}) {
      const std::string link = name + "/" + std::to_string(from) + " to " + std::to_string(to);
      links[{from, to}] = make({link, from == ranks.rank ? sender : receiver, 2});
    }
  }
  return links;
}

class ProcessGroups final : public Communicator {
 public:
  // The stages of a chain may never call a collective, so their group for collectives does not connect now.
  ProcessGroups(const std::string& name, const GroupOptions& ranks, at::Device device,
                std::unique_ptr<Communicator> host, const char* transport, const MakeDeviceGroup& make)
      : host_(std::move(host)),
        device_(device),
        transport_(transport),
        make_([make, all = GroupPlace{name + "/all", ranks.rank, ranks.size, !ranks.chain}](int time) {
          GroupPlace place = all;
          if (time > 0) place.name += ", time " + std::to_string(time);
          return make(place);
        }),
        all_(make_(0)),
        links_(ranks.chain ? links_of(name, ranks, make) : Links()) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  const char* transport() const override { return transport_; }
  at::Device device() const override { return device_; }
  Capabilities capabilities() const override { return {.ordered_messages = true}; }

  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    if (!on_device(tensor)) return host_->all_reduce(tensor);
    count_all_reduce(tensor);
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "all-reduce", [&] { return all_->allreduce(tensors); });
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    if (!on_device(tensor)) return host_->send(tensor, to, tag);
    count_sent(tensor.nbytes());
    std::vector<at::Tensor> tensors{tensor};
    const DeviceGroup& group = link(rank(), to);
    return start_work(rank(), "sending a message", [&] { return group->send(tensors, receiver, tag); });
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    if (!on_device(tensor)) return host_->receive(tensor, from, tag);
    std::vector<at::Tensor> tensors{tensor};
    const DeviceGroup& group = link(from, rank());
    return start_work(rank(), "receiving a message", [&] { return group->recv(tensors, sender, tag); });
  }
  // On the current stream if the group supports that. Then there is no work to wait for.
  void broadcast(const at::Tensor& tensor, int root) override {
    if (!on_device(tensor)) return host_->broadcast(tensor, root);
    if (rank() == root) count_sent(tensor.nbytes());
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.asyncOp = false;
    guarded(rank(), "broadcast", [&] {
      if (const auto work = all_->broadcast(tensors, options)) work->wait();
    });
  }
  void barrier() override { host_->barrier(); }
  std::int64_t take_sent_bytes() override {
    return Communicator::take_sent_bytes() + host_->take_sent_bytes();
  }
  void renew() override {
    guarded(rank(), "renewing the group", [&] {
      before_.push_back(std::exchange(all_, nullptr));
      all_ = make_(static_cast<int>(before_.size()));
    });
  }

 private:
  bool on_device(const at::Tensor& tensor) const { return tensor.device().type() == device_.type(); }
  const DeviceGroup& link(int from, int to) const {
    const auto found = links_.find({from, to});
    if (found == links_.end())
      throw InternalError("ranks " + std::to_string(from) + " and " + std::to_string(to) +
                          " are not neighbours of a chain");
    return found->second;
  }

  std::unique_ptr<Communicator> host_;
  at::Device device_;
  const char* transport_;
  std::function<DeviceGroup(int time)> make_;
  DeviceGroup all_;
  std::vector<DeviceGroup> before_;  // groups that `renew` has replaced
  Links links_;
};

}  // namespace

std::unique_ptr<Communicator> device_groups(const std::string& name, const GroupOptions& ranks,
                                            at::Device device, std::unique_ptr<Communicator> host,
                                            const char* transport, const MakeDeviceGroup& make) {
  return guarded(ranks.rank, "rendezvous of devices", [&]() -> std::unique_ptr<Communicator> {
    return std::make_unique<ProcessGroups>(name, ranks, device, std::move(host), transport, make);
  });
}

}  // namespace trainyard::runner
