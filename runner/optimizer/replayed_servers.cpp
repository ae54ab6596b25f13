#include "runner/optimizer/replayed_servers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "experiments/protocol/server_log.h"
#include "runner/optimizer/server_parts.h"

namespace trainyard::runner {

namespace {

// Servers and replicas of an epoch.
class Replay {
 public:
  Replay(const experiments::Optimizer& settings, const networks::Network& network,
         const std::vector<models::GroupFactors>& factors, const experiments::Strategy& strategy,
         std::function<std::vector<ServerEvents>()> logs)
      : next_logs_(std::move(logs)),
        parts_(network.parameters(), strategy),
        computed_(parts_.moved(network.parameters())),
        memory_(computed_.clone()),
        buffers_(network.buffers()) {
    for (int server = 0; server < parts_.servers(); ++server)
      optimizers_.push_back(parts_.optimizer_of(settings, memory_, factors, server));
    for (std::int64_t replica = 0; replica < strategy.replicas; ++replica)
      replicas_.push_back({memory_.clone(), {}});
  }

  void begin_epoch() {
    logs_ = next_logs_();
    if (logs_.size() != optimizers_.size()) throw InternalError("the logs are not those of all servers");
    at_.assign(logs_.size(), 0);
    updates_.clear();
    for (Replica& replica : replicas_) replica.buffers = copies_of_buffers();  // those of replica 0
  }

  // The next update that can be computed, with its parameters in the network. Empty at the end of the epoch.
  std::optional<std::int64_t> next() {
    const at::NoGradGuard no_grad;
    keep_buffers();
    while (follow_logs()) continue;
    const auto ready = std::ranges::find_if(updates_, [&](const auto& each) {
      return each.second.read == parts_.servers() && !each.second.gradient.defined();
    });
    current_ = ready == updates_.end() ? -1 : ready->first;
    if (ready == updates_.end()) {
      for (std::size_t server = 0; server < logs_.size(); ++server)
        if (at_[server] < logs_[server].size())
          throw InternalError("the logs of the servers allow no next update");
      computed_.copy_(memory_);
      set_buffers(replicas_.front());
      return std::nullopt;
    }
    computed_.copy_(replica().parameters);
    set_buffers(replica());
    return current_;
  }

  void take(const std::vector<at::Tensor>& gradients) {
    const at::NoGradGuard no_grad;
    Computed& update = updates_.at(current_);
    update.gradient = parts_.new_memory();
    update.learning_rate = learning_rate_;
    parts_.write(gradients, update.gradient);
  }

  void set_learning_rate(double learning_rate) { learning_rate_ = learning_rate; }

 private:
  struct Replica {
    at::Tensor parameters;  // as it has read them last
    std::vector<at::Tensor> buffers;
  };
  struct Computed {
    int replica = 0;
    int read = 0;         // servers whose parameters it has
    int applied = 0;      // servers that have applied it
    at::Tensor gradient;  // undefined: not computed yet
    double learning_rate = 0;
  };

  Replica& replica() { return replicas_[static_cast<std::size_t>(updates_.at(current_).replica)]; }

  std::vector<at::Tensor> copies_of_buffers() const {
    std::vector<at::Tensor> copies;
    for (const networks::NamedParameter& buffer : buffers_) copies.push_back(buffer.value.clone());
    return copies;
  }
  void keep_buffers() {
    if (current_ >= 0) replica().buffers = copies_of_buffers();
  }
  void set_buffers(const Replica& from) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) at::Tensor(buffers_[i].value).copy_(from.buffers[i]);
  }

  // Whether any server made a step.
  bool follow_logs() {
    bool any = false;
    for (std::size_t server = 0; server < logs_.size(); ++server)
      while (at_[server] < logs_[server].size() && follow(static_cast<int>(server))) any = true;
    return any;
  }

  bool follow(int server) {
    std::size_t& place = at_[static_cast<std::size_t>(server)];
    const experiments::ServerEvent event =
        experiments::event_of(logs_[static_cast<std::size_t>(server)][place]);
    Computed& update = updates_[event.update];
    if (event.applied) {
      if (!update.gradient.defined()) return false;
      Optimizer& optimizer = *optimizers_[static_cast<std::size_t>(server)];
      optimizer.set_learning_rate(update.learning_rate);
      if (const auto slices = parts_.slices_in(update.gradient, server); !slices.empty())
        optimizer.update(slices, std::nullopt);
      if (++update.applied == parts_.servers()) updates_.erase(event.update);
    } else {
      if (event.replica >= static_cast<int>(replicas_.size()))
        throw InternalError("a log names a replica that the run does not have");
      update.replica = event.replica;
      ++update.read;
      const at::Tensor& parameters = replicas_[static_cast<std::size_t>(event.replica)].parameters;
      for (std::size_t bucket = 0; bucket < parts_.buckets(); ++bucket)
        parts_.of(parameters, bucket, server).copy_(parts_.of(memory_, bucket, server));
    }
    ++place;
    return true;
  }

  std::function<std::vector<ServerEvents>()> next_logs_;
  ServerParts parts_;
  at::Tensor computed_;  // parameters of the network
  at::Tensor memory_;    // parameters of the servers
  std::vector<networks::NamedParameter> buffers_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // by server
  std::vector<Replica> replicas_;
  std::vector<ServerEvents> logs_;
  std::vector<std::size_t> at_;  // by server: events that were followed
  std::map<std::int64_t, Computed> updates_;
  std::int64_t current_ = -1;  // update that is computed
  double learning_rate_ = 0;
};

class ReplayedOrder final : public StepOrder {
 public:
  explicit ReplayedOrder(std::shared_ptr<Replay> replay) : replay_(std::move(replay)) {}
  void begin_epoch(std::int64_t /*steps*/) override { replay_->begin_epoch(); }
  std::optional<std::int64_t> next() override { return replay_->next(); }

 private:
  std::shared_ptr<Replay> replay_;
};

class ReplayedGradients final : public Optimizer {
 public:
  explicit ReplayedGradients(std::shared_ptr<Replay> replay) : replay_(std::move(replay)) {}
  void update(const std::vector<at::Tensor>& gradients,
              const std::optional<at::Tensor>& /*found_inf*/) override {
    replay_->take(gradients);
  }
  void set_learning_rate(double learning_rate) override { replay_->set_learning_rate(learning_rate); }
  std::vector<std::vector<at::Tensor>> state() const override { return {}; }

 private:
  std::shared_ptr<Replay> replay_;
};

}  // namespace

Update replayed_update(const experiments::Optimizer& settings, const networks::Network& network,
                       const std::vector<models::GroupFactors>& factors,
                       const experiments::Strategy& strategy,
                       std::function<std::vector<ServerEvents>()> logs) {
  const auto replay = std::make_shared<Replay>(settings, network, factors, strategy, std::move(logs));
  return {local_reducer(network.parameters()), std::make_unique<ReplayedGradients>(replay),
          std::make_unique<ReplayedOrder>(replay)};
}

}  // namespace trainyard::runner
