#include "runner/gradients/reducer.h"

#include <utility>

#include <ATen/ATen.h>

#include "base/error.h"
#include "runner/gradients/bucketed_reducer.h"
#include "runner/gradients/row_gradient.h"

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
  // One flat tensor a bucket; the gradients are views into it, with the strides of their parameters.
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
  std::unique_ptr<Communicator::Work> leave(std::size_t bucket) override {
    return communicator_.all_reduce(flat_[bucket]);
  }

  Communicator& communicator_;
  std::vector<at::Tensor> flat_;  // of each bucket
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

}  // namespace trainyard::runner
