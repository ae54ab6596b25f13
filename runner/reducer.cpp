#include "runner/reducer.h"

#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "models/error.h"
#include "runner/row_gradient.h"

namespace trainyard::runner {

namespace {

namespace autograd = torch::autograd;

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
        throw InternalError("parameter " + parameters_[i].name + " got no gradient in this step");
      }
      gradients_[i] = with_each_row_once(gradient);
    }
  }
  void reduce_zeros() override { throw InternalError("a single rank has samples in every step"); }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }

 private:
  std::vector<networks::NamedParameter> parameters_;
  std::vector<at::Tensor> gradients_;
};

struct Bucket {
  at::Tensor flat;
  std::vector<std::size_t> members;  // indices of parameters
  std::size_t missing = 0;           // of this step
  std::unique_ptr<Communicator::Work> work;
};

// Parameters in reverse order, cut into buckets of at most `bucket_bytes` (or one parameter).
std::vector<Bucket> cut_into_buckets(const std::vector<networks::NamedParameter>& parameters,
                                     std::int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  std::int64_t bytes = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto more = static_cast<std::int64_t>(parameters[i].value.nbytes());
    if (buckets.empty() || bytes + more > bucket_bytes) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().members.push_back(i);
    bytes += more;
  }
  return buckets;
}

class BucketReducer final : public Reducer {
 public:
  BucketReducer(std::vector<networks::NamedParameter> parameters, Communicator& communicator,
                std::int64_t bucket_bytes)
      : parameters_(std::move(parameters)),
        communicator_(communicator),
        buckets_(cut_into_buckets(parameters_, bucket_bytes)),
        bucket_of_(parameters_.size()),
        gradients_(parameters_.size()) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) lay_out(b);
    for (std::size_t i = 0; i < parameters_.size(); ++i) watch(i);
  }
  ~BucketReducer() override {
    for (const Hook& hook : hooks_) hook.accumulator->del_post_hook(hook.key);
  }
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  void prepare() override {
    next_ = 0;
    last_ = false;
    for (auto& parameter : parameters_) parameter.value.mutable_grad().reset();
    for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
  }
  void last_backward() override { last_ = true; }
  void finish() override {
    if (next_ < buckets_.size()) throw InternalError(unused_parameter() + " got no gradient in this step");
    for (Bucket& bucket : buckets_) std::exchange(bucket.work, nullptr)->wait();
  }
  void reduce_zeros() override {
    prepare();
    for (Bucket& bucket : buckets_) bucket.flat.zero_();
    while (next_ < buckets_.size()) launch();
    finish();
  }
  const std::vector<at::Tensor>& gradients() const override { return gradients_; }

 private:
  using Accumulator = decltype(autograd::impl::grad_accumulator(at::Tensor()));
  struct Hook {
    Accumulator accumulator;  // alive as long as its hook is wanted
    std::uintptr_t key;
  };

  // One flat tensor a bucket; the gradients are views into it, with the strides of their parameters.
  void lay_out(std::size_t index) {
    Bucket& bucket = buckets_[index];
    std::int64_t size = 0;
    for (const std::size_t i : bucket.members) size += parameters_[i].value.numel();
    bucket.flat = communicator_.allocate(size, parameters_[bucket.members.front()].value.scalar_type());
    std::int64_t offset = 0;
    for (const std::size_t i : bucket.members) {
      const at::Tensor& value = parameters_[i].value;
      bucket_of_[i] = index;
      gradients_[i] = bucket.flat.as_strided(value.sizes(), value.strides(), offset);
      offset += value.numel();
    }
  }

  // Has `arrived` called whenever a backward has added to the gradient of parameter `i`.
  void watch(std::size_t i) {
    Accumulator accumulator = autograd::impl::grad_accumulator(parameters_[i].value);
    if (!accumulator)
      throw InternalError("parameter " + parameters_[i].name + " does not require its gradient");
    const auto key = accumulator->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
        [this, i](const autograd::variable_list& outputs, const autograd::variable_list&) {
          arrived(i);
          return outputs;
        }));
    hooks_.push_back({std::move(accumulator), key});
  }

  void arrived(std::size_t i) {
    if (!last_) return;
    write_whole(parameters_[i].value.grad(), gradients_[i]);
    --buckets_[bucket_of_[i]].missing;
    while (next_ < buckets_.size() && buckets_[next_].missing == 0) launch();
  }

  // Buckets leave in the order of their index on every rank, so that collectives match.
  void launch() {
    Bucket& bucket = buckets_[next_++];
    bucket.work = communicator_.all_reduce(bucket.flat);
  }

  std::string unused_parameter() const {
    for (const auto& parameter : parameters_) {
      if (!parameter.value.grad().defined()) return "parameter " + parameter.name;
    }
    return "a parameter";
  }

  std::vector<networks::NamedParameter> parameters_;
  Communicator& communicator_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // of each parameter
  std::vector<at::Tensor> gradients_;
  std::vector<Hook> hooks_;
  std::size_t next_ = 0;  // the first bucket that has not left
  bool last_ = false;     // the backward under way is the step's last
};

}  // namespace

std::unique_ptr<Reducer> local_reducer(std::vector<networks::NamedParameter> parameters) {
  return std::make_unique<LocalReducer>(std::move(parameters));
}

std::unique_ptr<Reducer> bucket_reducer(std::vector<networks::NamedParameter> parameters,
                                        Communicator& communicator, std::int64_t bucket_bytes) {
  return std::make_unique<BucketReducer>(std::move(parameters), communicator, bucket_bytes);
}

}  // namespace trainyard::runner
