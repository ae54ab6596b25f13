#include "runner/communicator/gloo_communicator.h"

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/fd.h"
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
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "all-reduce", [&] { return group_->allreduce(tensors); });
  }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "sending to a stage", [&] { return group_->send(tensors, to, tag); });
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    std::vector<at::Tensor> tensors{tensor};
    return start_work(rank(), "receiving from a stage", [&] { return group_->recv(tensors, from, tag); });
  }
  void broadcast(const at::Tensor& tensor, int root) override {
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

Store connect_to(const Environment& environment) {
  if (!environment.store_file.empty())
    return c10::make_intrusive<c10d::FileStore>(environment.store_file.string(), environment.world_size);
  c10d::TCPStoreOptions options;
  options.port = environment.store_port;
  options.isServer = !environment.agent_store && environment.rank == 0;
  options.waitWorkers = false;
  options.timeout = communication_timeout;
  return c10::make_intrusive<c10d::TCPStore>(environment.store_host, options);
}

// A socket that listens on a free port of 127.0.0.1. TCPStore itself listens on all interfaces.
FileDescriptor loopback_socket(std::uint16_t& port) {
  const auto check = [](int result) {
    if (result < 0) throw std::system_error(errno, std::generic_category(), "listening on 127.0.0.1");
  };
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(fd.get());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  check(::bind(fd.get(), any, size));
  check(::listen(fd.get(), SOMAXCONN));
  check(::getsockname(fd.get(), any, &size));
  port = ntohs(address.sin_port);
  return fd;
}

}  // namespace

Store connect_store(const Environment& environment) {
  ignore_broken_pipes();  // this process may serve the store
  return guarded(environment.rank, "connecting to the store", [&]() -> Store {
    const Store store = connect_to(environment);
    store->setTimeout(communication_timeout);
    return c10::make_intrusive<c10d::PrefixStore>("trainyard/" + environment.run_id, store);
  });
}

ServedStore serve_store(Listen where) {
  ignore_broken_pipes();
  c10d::TCPStoreOptions options;
  options.port = 0;  // any free port
  options.isServer = true;
  options.waitWorkers = false;
  FileDescriptor socket;
  if (where == Listen::loopback) {
    socket = loopback_socket(options.port);
    options.masterListenFd = socket.release();  // the store closes it
  }
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  return {store, store->getPort()};
}

std::unique_ptr<Communicator> gloo_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group) {
  ignore_broken_pipes();
  return guarded(group.rank, "rendezvous", [&]() -> std::unique_ptr<Communicator> {
    using Gloo = c10d::ProcessGroupGloo;
    auto options = Gloo::Options::create(group.timeout);
    options->devices.push_back(group.one_host ? Gloo::createDeviceForHostname("127.0.0.1")
                                              : Gloo::createDefaultDevice());
    return std::make_unique<GlooCommunicator>(c10::make_intrusive<Gloo>(
        c10::make_intrusive<c10d::PrefixStore>(name, store), group.rank, group.size, options));
  });
}

}  // namespace trainyard::runner
