#include "runner/communicator/gloo_communicator.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "runner/communicator/accepted_connections.h"
#include "runner/communicator/process_groups.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

namespace {

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(c10::intrusive_ptr<c10d::ProcessGroupGloo> group) : group_(std::move(group)) {}

  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }
  const char* transport() const override { return "gloo"; }
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    count_all_reduce(tensor);
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "all-reduce", [&] { return group_->allreduce(tensors); });
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    count_sent(tensor.nbytes());
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "sending a message", [&] { return group_->send(tensors, to, tag); });
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "receiving a message", [&] { return group_->recv(tensors, from, tag); });
  }
  int receive_from_any(const at::Tensor& tensor, int tag) override {
    std::vector<at::Tensor> tensors{tensor};
    return guarded(rank(), "receiving a message", [&] {
      const auto work = group_->recvAnysource(tensors, tag);
      work->wait();
      return work->sourceRank();
    });
  }
  void broadcast(const at::Tensor& tensor, int root) override {
    if (rank() == root) count_sent(tensor.nbytes());
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    guarded(rank(), "broadcast", [&] { return group_->broadcast(tensors, options)->wait(); });
  }
  void barrier() override {
    guarded(rank(), "barrier", [&] { return group_->barrier()->wait(); });
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

// One host: the loopback interface. Several hosts: the interface that the launcher names, as PyTorch does, else
// that of the host's name.
std::shared_ptr<::gloo::transport::Device> device_of(const GroupOptions& group) {
  using Gloo = c10d::ProcessGroupGloo;
  if (group.one_host) return Gloo::createDeviceForHostname("127.0.0.1");
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface != nullptr && *interface != '\0' ? Gloo::createDeviceForInterface(interface)
                                                    : Gloo::createDefaultDevice();
}

}  // namespace

std::unique_ptr<Communicator> gloo_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group) {
  ignore_broken_pipes();
  require_checked_accept();
  return guarded(group.rank, "rendezvous", [&]() -> std::unique_ptr<Communicator> {
    using Gloo = c10d::ProcessGroupGloo;
    auto options = Gloo::Options::create(group.timeout);
    options->devices.push_back(device_of(group));
    return std::make_unique<GlooCommunicator>(c10::make_intrusive<Gloo>(
        c10::make_intrusive<c10d::PrefixStore>(name, store), group.rank, group.size, options));
  });
}

}  // namespace trainyard::runner
