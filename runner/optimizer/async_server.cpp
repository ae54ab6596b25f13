#include "runner/optimizer/async_server.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "experiments/protocol/server_log.h"
#include "runner/optimizer/server_parts.h"

namespace trainyard::runner {

namespace {

// What a replica wants of a server: float64 [kind, update, learning rate].
enum class Want : int { next, parameters, apply };
constexpr int want_tag = 0, answer_tag = 1;
constexpr std::int64_t no_more = -1;

at::Tensor want(Want kind, std::int64_t update, double learning_rate = 0) {
  return at::tensor({static_cast<double>(kind), static_cast<double>(update), learning_rate}, at::kDouble);
}

struct AsyncRank : ServedRank {
  using ServedRank::ServedRank;

  std::unique_ptr<Communicator::Work> ask(int server, const at::Tensor& want) const {
    return messages.ranks().send(want, messages.rank_of(server), want_tag);
  }

  std::int64_t update = 0;  // that a replica computes
};

// A replica asks for its next update, and for the parameters.
class AskedOrder final : public StepOrder {
 public:
  explicit AskedOrder(std::shared_ptr<AsyncRank> rank) : rank_(std::move(rank)) {}

  std::optional<std::int64_t> next() override {
    Works asked;  // awaited last: a server may first have to send what it has for this rank
    asked.push_back(rank_->ask(0, want(Want::next, 0)));
    const at::Tensor answer = at::zeros({1}, at::kLong);
    rank_->messages.ranks().receive(answer, rank_->messages.rank_of(0), answer_tag)->wait();
    rank_->update = answer.item<std::int64_t>();
    const bool more = rank_->update != no_more;
    for (int server = 0; more && server < rank_->parts.servers(); ++server)
      asked.push_back(rank_->ask(server, want(Want::parameters, rank_->update)));
    rank_->messages.receive_from_servers(rank_->memory);  // without more, those of the end of the epoch
    wait_for(asked);
    return more ? std::optional(rank_->update) : std::nullopt;
  }

 private:
  std::shared_ptr<AsyncRank> rank_;
};

// A replica sends the gradient of its update.
class SentGradient final : public Optimizer {
 public:
  explicit SentGradient(std::shared_ptr<AsyncRank> rank)
      : rank_(std::move(rank)), gradient_(rank_->parts.new_memory()) {}

  void update(const std::vector<at::Tensor>& gradients,
              const std::optional<at::Tensor>& /*found_inf*/) override {
    rank_->parts.write(gradients, gradient_);
    Works works;
    for (int server = 0; server < rank_->parts.servers(); ++server)
      works.push_back(rank_->ask(server, want(Want::apply, rank_->update, learning_rate_)));
    for (std::size_t bucket = 0; bucket < rank_->parts.buckets(); ++bucket)
      rank_->messages.send_to_servers(gradient_, bucket, works);
    wait_for(works);
  }
  void set_learning_rate(double learning_rate) override { learning_rate_ = learning_rate; }
  std::vector<std::vector<at::Tensor>> state() const override { return {}; }

 private:
  std::shared_ptr<AsyncRank> rank_;
  at::Tensor gradient_;
  double learning_rate_ = 0;
};

// A server in an epoch.
class AsyncServer {
 public:
  AsyncServer(std::shared_ptr<AsyncRank> rank, std::optional<std::int64_t> bound)
      : rank_(std::move(rank)),
        bound_(bound),
        gradient_(at::zeros_like(rank_->memory)),
        read_at_(static_cast<std::size_t>(rank_->messages.replicas())),
        finished_(read_at_.size()) {}

  void begin_epoch(std::int64_t updates) {
    updates_ = updates;
    given_ = applied_ = 0;
    std::ranges::fill(finished_, 0);
  }

  // Answers replicas until one of them has sent a gradient, which is then in `slices`. Returns its learning rate.
  double receive_gradient() {
    while (true) {
      const at::Tensor wanted = at::zeros({3}, at::kDouble);
      const int replica = rank_->messages.ranks().receive_from_any(wanted, want_tag);
      const double* const numbers = wanted.const_data_ptr<double>();
      const auto update = static_cast<std::int64_t>(numbers[1]);
      switch (static_cast<Want>(static_cast<int>(numbers[0]))) {
        case Want::next:
          waiting_.push_back(replica);
          give_updates();
          break;
        case Want::parameters:
          send_parameters(replica, update);
          break;
        case Want::apply:
          receive(replica, update);
          return numbers[2];
      }
    }
  }

  // After the last gradient: replicas still ask for more, and all get the parameters.
  void end_epoch() {
    for (int ended = server() == 0 ? static_cast<int>(waiting_.size()) : rank_->messages.replicas();
         ended < rank_->messages.replicas(); ++ended) {
      const at::Tensor wanted = at::zeros({3}, at::kDouble);
      waiting_.push_back(rank_->messages.ranks().receive_from_any(wanted, want_tag));
    }
    for (const int replica : std::exchange(waiting_, {})) answer(replica, no_more);
    rank_->messages.send_to_replicas(rank_->memory);
  }

  std::vector<at::Tensor> slices() const { return rank_->parts.slices_in(gradient_, server()); }
  HeldTensors held() const { return {{gradient_}, {}, 1, {rank_->memory}}; }
  ServerLog take_log() { return std::exchange(log_, {}); }

 private:
  int server() const { return rank_->messages.server(); }

  void answer(int replica, std::int64_t update) const {
    rank_->messages.ranks().send(at::full({1}, update, at::kLong), replica, answer_tag)->wait();
  }

  // Replicas that have asked get updates in this order. At the end of the epoch they wait for its last one.
  void give_updates() {
    std::erase_if(waiting_, [&](int replica) {
      if (given_ == updates_ || is_too_fast(replica)) return false;
      answer(replica, given_++);
      return true;
    });
  }
  bool is_too_fast(int replica) const {
    return bound_ && finished_[static_cast<std::size_t>(replica)] > std::ranges::min(finished_) + *bound_;
  }

  void send_parameters(int replica, std::int64_t update) {
    read_at_[static_cast<std::size_t>(replica)] = applied_;
    log_.events.push_back(experiments::number_of({update, replica, false}));
    Works works;
    rank_->messages.send_to(replica, rank_->memory, works);
    wait_for(works);
  }

  void receive(int replica, std::int64_t update) {
    const at::NoGradGuard no_grad;
    Works works;
    for (std::size_t bucket = 0; bucket < rank_->parts.buckets(); ++bucket)
      if (const at::Tensor part = rank_->parts.of(gradient_, bucket, server()); part.numel() > 0)
        rank_->messages.receive_from(replica, part, bucket, works);
    wait_for(works);
    log_.events.push_back(experiments::number_of({update, replica, true}));
    ++log_.staleness[applied_ - read_at_[static_cast<std::size_t>(replica)]];
    ++applied_;
    ++finished_[static_cast<std::size_t>(replica)];
    give_updates();
  }

  std::shared_ptr<AsyncRank> rank_;
  std::optional<std::int64_t> bound_;
  at::Tensor gradient_;
  std::int64_t updates_ = 0, given_ = 0, applied_ = 0;  // of the epoch
  std::vector<std::int64_t> read_at_;   // by replica: applied updates when it read the parameters
  std::vector<std::int64_t> finished_;  // by replica, of the epoch
  std::vector<int> waiting_;            // replicas that have asked for an update
  ServerLog log_;
};

// Each step of a server applies one gradient.
class ServerOrder final : public StepOrder {
 public:
  explicit ServerOrder(std::shared_ptr<AsyncServer> server) : server_(std::move(server)) {}

  void begin_epoch(std::int64_t steps) override {
    StepOrder::begin_epoch(steps);
    server_->begin_epoch(steps);
  }
  std::optional<std::int64_t> next() override {
    const auto step = StepOrder::next();
    if (!step) server_->end_epoch();
    return step;
  }
  ServerLog take_log() override { return server_->take_log(); }

 private:
  std::shared_ptr<AsyncServer> server_;
};

class NoGradients final : public Reducer {
 public:
  explicit NoGradients(std::shared_ptr<AsyncServer> server) : server_(std::move(server)) {}

  void prepare() override {}
  void last_backward() override {}
  void finish() override { throw InternalError("a server has a step with samples"); }
  void reduce_zeros() override {}
  const std::vector<at::Tensor>& gradients() const override { return none_; }
  HeldTensors held() const override { return server_->held(); }

 private:
  std::shared_ptr<AsyncServer> server_;
  std::vector<at::Tensor> none_;
};

class AppliedGradients final : public Optimizer {
 public:
  AppliedGradients(std::shared_ptr<AsyncServer> server, std::unique_ptr<Optimizer> own)
      : server_(std::move(server)), slices_(server_->slices()), own_(std::move(own)) {}

  void update(const std::vector<at::Tensor>& /*gradients*/,
              const std::optional<at::Tensor>& found_inf) override {
    own_->set_learning_rate(server_->receive_gradient());
    if (!slices_.empty()) own_->update(slices_, found_inf);
  }
  void set_learning_rate(double /*learning_rate*/) override {}  // each gradient brings its own
  void restore_step(std::int64_t steps) override { own_->restore_step(steps); }
  std::vector<std::vector<at::Tensor>> state() const override { return own_->state(); }

 private:
  std::shared_ptr<AsyncServer> server_;
  std::vector<at::Tensor> slices_;
  std::unique_ptr<Optimizer> own_;
};

}  // namespace

Update async_update(const experiments::Optimizer& settings,
                    const std::vector<networks::NamedParameter>& parameters,
                    const std::vector<models::GroupFactors>& factors, Communicator& ranks,
                    const experiments::Strategy& strategy) {
  const auto rank = std::make_shared<AsyncRank>(parameters, ranks, strategy);
  const int own = rank->messages.server();
  if (own < 0)
    return {local_reducer(parameters), std::make_unique<SentGradient>(rank),
            std::make_unique<AskedOrder>(rank)};
  const auto server = std::make_shared<AsyncServer>(rank, strategy.staleness);
  auto optimizer = rank->parts.optimizer_of(settings, rank->memory, factors, own);
  return {std::make_unique<NoGradients>(server),
          std::make_unique<AppliedGradients>(server, std::move(optimizer)),
          std::make_unique<ServerOrder>(server), std::make_unique<FreedNetwork>(parameters)};
}

}  // namespace trainyard::runner
