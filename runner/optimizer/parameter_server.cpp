#include "runner/optimizer/parameter_server.h"

#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/optimizer/server_parts.h"

namespace trainyard::runner {

namespace {

using Rank = std::shared_ptr<const ServedRank>;

// A replica sends its gradients and keeps none.
class PushingReducer final : public BucketedReducer {
 public:
  PushingReducer(std::vector<networks::NamedParameter> of, const Rank& rank)
      : BucketedReducer(std::move(of), rank->parts.layout().buckets()),
        rank_(rank),
        own_(rank->parts.new_memory()) {}

  const std::vector<at::Tensor>& gradients() const override { return none_; }
  HeldTensors held() const override { return {{}, {own_}}; }
  std::vector<at::Tensor> whole_gradients() override {
    const at::Tensor sums = rank_->parts.new_memory();
    rank_->messages.receive_from_servers(sums);
    return rank_->parts.wholes_in(sums);
  }

 private:
  void take(std::size_t parameter, const at::Tensor& gradient) override {
    write_whole(gradient, rank_->parts.layout().in(own_, parameter));
  }
  std::unique_ptr<Communicator::Work> start_reduction(std::size_t bucket) override {
    auto works = std::make_shared<Works>();
    rank_->messages.send_to_servers(own_, bucket, *works);
    return finished_by([works] { wait_for(*works); });
  }

  Rank rank_;
  at::Tensor own_;
  std::vector<at::Tensor> none_;
};

// A replica receives the parameters that the servers have updated.
class PulledParameters final : public Optimizer {
 public:
  explicit PulledParameters(Rank rank) : rank_(std::move(rank)) {}

  void update(const std::vector<at::Tensor>& /*gradients*/,
              const std::optional<at::Tensor>& /*found_inf*/) override {}
  void synchronize() override { rank_->messages.receive_from_servers(rank_->memory); }
  void set_learning_rate(double /*learning_rate*/) override {}
  std::vector<std::vector<at::Tensor>> state() const override { return {}; }

 private:
  Rank rank_;
};

// A server has no samples. It adds the gradients of the replicas in their order.
class AddingReducer final : public Reducer {
 public:
  explicit AddingReducer(const Rank& rank)
      : rank_(rank),
        sums_(at::zeros_like(rank->memory)),
        gradients_(rank->parts.slices_in(sums_, rank->messages.server())) {}

  void prepare() override {}
  void last_backward() override {}
  void finish() override { throw InternalError("a server has a step with samples"); }
  void reduce_zeros() override {
    const at::NoGradGuard no_grad;
    for (std::size_t bucket = 0; bucket < rank_->parts.buckets(); ++bucket)
      if (const at::Tensor sum = rank_->parts.of(sums_, bucket, rank_->messages.server()); sum.numel() > 0)
        add(bucket, sum);
  }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  bool sharded() const override { return true; }
  HeldTensors held() const override { return {{sums_}, {}, 1, {rank_->memory}}; }
  // To the replicas. The server itself has none.
  std::vector<at::Tensor> whole_gradients() override {
    rank_->messages.send_to_replicas(sums_);
    return std::vector<at::Tensor>(rank_->parts.layout().parameters(), sums_.narrow(0, 0, 0));
  }

 private:
  void add(std::size_t bucket, const at::Tensor& sum) const {
    std::vector<at::Tensor> pushed{sum};
    Works works;
    for (int replica = 0; replica < rank_->messages.replicas(); ++replica) {
      if (replica > 0) pushed.push_back(at::empty_like(sum));
      rank_->messages.receive_from(replica, pushed.back(), bucket, works);
    }
    for (std::size_t replica = 0; replica < pushed.size(); ++replica) {
      works[replica]->wait();
      if (replica > 0) sum.add_(pushed[replica]);
    }
  }

  Rank rank_;
  at::Tensor sums_;
  std::vector<at::Tensor> gradients_;  // of the slices of this server
};

// A server updates its slices and sends them to all replicas.
class ServedParameters final : public Optimizer {
 public:
  ServedParameters(const experiments::Optimizer& settings, const std::vector<models::GroupFactors>& factors,
                   const Rank& rank)
      : rank_(rank),
        own_(rank->parts.optimizer_of(settings, rank->memory, factors, rank->messages.server())) {}

  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf) override {
    if (!gradients.empty()) own_->update(gradients, found_inf);
  }
  void synchronize() override { rank_->messages.send_to_replicas(rank_->memory); }
  void set_learning_rate(double learning_rate) override { own_->set_learning_rate(learning_rate); }
  void restore_step(std::int64_t steps) override { own_->restore_step(steps); }
  std::vector<std::vector<at::Tensor>> state() const override { return own_->state(); }

 private:
  Rank rank_;
  std::unique_ptr<Optimizer> own_;
};

}  // namespace

Update served_update(const experiments::Optimizer& settings,
                     const std::vector<networks::NamedParameter>& parameters,
                     const std::vector<models::GroupFactors>& factors, Communicator& ranks,
                     const experiments::Strategy& strategy) {
  const auto rank = std::make_shared<const ServedRank>(parameters, ranks, strategy);
  if (rank->messages.server() < 0)
    return {std::make_unique<PushingReducer>(parameters, rank), std::make_unique<PulledParameters>(rank)};
  Update update{std::make_unique<AddingReducer>(rank),
                std::make_unique<ServedParameters>(settings, factors, rank)};
  update.whole = std::make_unique<FreedNetwork>(parameters);
  return update;
}

}  // namespace trainyard::runner
