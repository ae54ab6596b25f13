#include "runner/gradients/reducer.h"

#include <utility>

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/networks/libtorch_private.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

class LocalReducer final : public Reducer {
 public:
  explicit LocalReducer(std::vector<networks::NamedParameter> parameters)
      : parameters_(std::move(parameters)), gradients_(parameters_.size()) {}

  void prepare() override {
    for (auto& parameter : parameters_) parameter.value.mutable_grad().reset();
  }
  void last_backward() override {}
  void finish() override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].value.grad();
      if (!gradient.defined()) {
        throw InternalError("parameter " + parameters_[i].name + " has no gradient in this step");
      }
      gradients_[i] = coalesced(gradient);
    }
  }
  void reduce_zeros() override { throw InternalError("a single rank has a step without samples"); }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }

 private:
  std::vector<networks::NamedParameter> parameters_;
  std::vector<at::Tensor> gradients_;
};

class BucketReducer final : public BucketedReducer {
 public:
  BucketReducer(std::vector<networks::NamedParameter> of, Buckets in, Communicator& communicator)
      : BucketedReducer(std::move(of), std::move(in)),
        communicator_(communicator),
        gradients_(parameters().size()) {
    for (const auto& bucket : buckets()) lay_out(bucket);
  }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }

 private:
  // One flat tensor per bucket. The gradients are views into it, with the strides of their parameters.
  void lay_out(const std::vector<std::size_t>& bucket) {
    std::int64_t size = 0;
    for (const std::size_t i : bucket) size += parameters()[i].value.numel();
    flat_.push_back(communicator_.allocate(size, parameters()[bucket.front()].value.scalar_type()));
    std::int64_t offset = 0;
    for (const std::size_t i : bucket) {
      const at::Tensor& value = parameters()[i].value;
      gradients_[i] = flat_.back().as_strided(value.sizes(), value.strides(), offset);
      offset += value.numel();
    }
  }
  void take(std::size_t parameter, const at::Tensor& gradient) override {
    write_whole(gradient, gradients_[parameter]);
  }
  std::unique_ptr<Communicator::Work> start_reduction(std::size_t bucket) override {
    return communicator_.all_reduce(flat_[bucket]);
  }

  Communicator& communicator_;
  std::vector<at::Tensor> flat_;  // per bucket
  std::vector<at::Tensor> gradients_;
};

}  // namespace

std::unique_ptr<Reducer> local_reducer(std::vector<networks::NamedParameter> parameters) {
  return std::make_unique<LocalReducer>(std::move(parameters));
}

std::unique_ptr<Reducer> bucket_reducer(std::vector<networks::NamedParameter> parameters,
                                        Communicator& communicator, std::int64_t bucket_bytes) {
  Buckets buckets = cut_into_buckets(values_of(parameters), bucket_bytes);
  return std::make_unique<BucketReducer>(std::move(parameters), std::move(buckets), communicator);
}

Buckets cut_into_buckets(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes) {
  Buckets buckets;
  std::int64_t bytes = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto more = static_cast<std::int64_t>(parameters[i].nbytes());
    if (buckets.empty() || bytes + more > bucket_bytes) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(i);
    bytes += more;
  }
  return buckets;
}

BucketedReducer::BucketedReducer(std::vector<networks::NamedParameter> parameters, Buckets buckets, int turns)
    : parameters_(std::move(parameters)),
      buckets_(std::move(buckets)),
      bucket_of_(parameters_.size()),
      missing_(buckets_.size()),
      turns_(turns) {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const std::size_t i : buckets_[b]) bucket_of_[i] = b;
  for (std::size_t i = 0; i < parameters_.size(); ++i) watch(i);
}

void BucketedReducer::prepare() {
  last_ = turns_ > 0;
  done_ = 0;
  drop_sums();
  for (auto& parameter : parameters_) parameter.value.mutable_grad().reset();
  begin_turn();
}

void BucketedReducer::begin_turn() {
  reductions_.clear();
  for (std::size_t b = 0; b < buckets_.size(); ++b) missing_[b] = buckets_[b].size();
}

void BucketedReducer::finish() {
  bool begun = turns_ == 0 || done_ > turns_;
  for (std::size_t b = 0; b < buckets_.size(); ++b) begun = begun || missing_[b] < buckets_[b].size();
  if (begun && reductions_.size() < buckets_.size())
    throw InternalError(without_gradient() + " has no gradient in this step");
  if (turns_ == 0) wait();
  while (done_ < turns_) add_zeros();
}

void BucketedReducer::wait() {
  for (auto& work : reductions_) std::exchange(work, nullptr)->wait();
}

void BucketedReducer::reduce_zeros() {
  prepare();
  last_ = true;
  if (turns_ == 0) add_zeros();
  finish();
}

void BucketedReducer::add_zeros() {
  forward_of_zeros();
  for (const auto& bucket : buckets_)
    for (const std::size_t i : bucket) arrived(i, at::zeros_like(parameters_[i].value.detach()));
}

// Adds a hook that calls `arrived` when a backward has accumulated the gradient of a parameter.
void BucketedReducer::watch(std::size_t parameter) {
  const at::Tensor& value = parameters_[parameter].value;
  auto hook = libtorch::on_gradient(
      value, [this, parameter] { arrived(parameter, parameters_[parameter].value.grad()); });
  if (!hook) throw InternalError("parameter " + parameters_[parameter].name + " does not require a gradient");
  hooks_.push_back(std::move(hook));
}

void BucketedReducer::arrived(std::size_t parameter, const at::Tensor& gradient) {
  if (!last_) return;
  take(parameter, gradient);
  --missing_[bucket_of_[parameter]];
  while (reductions_.size() < buckets_.size() && missing_[reductions_.size()] == 0)
    reductions_.push_back(start_reduction(reductions_.size()));
  if (turns_ == 0 || reductions_.size() < buckets_.size()) return;
  wait();
  ++done_;
  begin_turn();
}

std::string BucketedReducer::without_gradient() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (missing_[bucket_of_[i]] > 0 && !parameters_[i].value.grad().defined())
      return "parameter " + parameters_[i].name;
  return "a parameter";
}

}  // namespace trainyard::runner
