#include "runner/gradients/sliced_reducer.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "runner/gradients/row_gradient.h"
#include "runner/gradients/slice_sums.h"

namespace trainyard::runner {

namespace {

class SlicedReducer final : public BucketedReducer {
 public:
  // `memory` [replicas, numbers of the layout] is seen by all.
  SlicedReducer(const std::vector<networks::NamedParameter>& of, SliceLayout layout, Communicator& replicas,
                const at::Tensor& memory)
      : BucketedReducer(of, layout.buckets()),
        layout_(std::move(layout)),
        replicas_(replicas),
        memory_(memory),
        for_others_(of.size()),
        rows_(of.size()),
        taken_(of.size()) {
    for (std::size_t bucket = 0; bucket < buckets().size(); ++bucket) share_out(bucket);
    gradients_.resize(own_.size());
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  bool in_slices() const override { return true; }

  std::vector<at::Tensor> whole_gradients() override {
    const at::NoGradGuard no_grad;
    for (std::size_t k = 0; k < own_.size(); ++k)
      own_[k].slice.of(shown_by(replicas_.rank(), own_[k].slice.parameter)).copy_(whole(gradients_[k]));
    replicas_.barrier();
    std::vector<at::Tensor> wholes;
    for (const auto& parameter : parameters()) wholes.push_back(at::empty_like(parameter.value.detach()));
    for (int rank = 0; rank < replicas_.size(); ++rank)
      for (const Slice& slice : layout_.slices(rank, replicas_.size()))
        slice.of(wholes[slice.parameter]).copy_(slice.of(shown_by(rank, slice.parameter)));
    replicas_.barrier();  // what was shown may be written again
    return wholes;
  }

 private:
  struct Own {
    Slice slice;
    std::vector<at::Tensor> shown;  // by each rank, of it
  };
  struct ForOthers {
    Slice slice;
    at::Tensor to;
  };

  at::Tensor shown_by(int rank, std::size_t parameter) const { return layout_.in(memory_[rank], parameter); }

  void share_out(std::size_t bucket) {
    first_own_.push_back(own_.size());
    for (int rank = 0; rank < replicas_.size(); ++rank) {
      for (const Slice& slice : layout_.slices(bucket, rank, replicas_.size())) {
        const std::size_t i = slice.parameter;
        if (rank == replicas_.rank()) {
          own_.push_back({slice, {}});
          for (int r = 0; r < replicas_.size(); ++r) own_.back().shown.push_back(slice.of(shown_by(r, i)));
        } else {
          for_others_[i].push_back({slice, slice.of(shown_by(replicas_.rank(), i))});
        }
      }
    }
    const std::size_t first = buckets()[bucket].front();
    if (layout_.columns(first) > 0) share_rows(first);
  }

  void share_rows(std::size_t parameter) {
    const std::int64_t rows = parameters()[parameter].value.size(0);
    const at::Tensor numbers = replicas_.allocate_shared(replicas_.size() * (1 + rows), at::kLong);
    for (int rank = 0; rank < replicas_.size(); ++rank)
      rows_[parameter].push_back(
          {shown_by(rank, parameter), numbers.slice(0, rank * (1 + rows), (rank + 1) * (1 + rows))});
  }

  void take(std::size_t parameter, const at::Tensor& gradient) override {
    const at::NoGradGuard no_grad;
    taken_[parameter] = whole_where_most(with_each_row_once(gradient));
    if (rows_[parameter].empty()) {
      taken_[parameter] = whole(taken_[parameter]);
      for (const ForOthers& part : for_others_[parameter]) part.to.copy_(part.slice.of(taken_[parameter]));
    } else {
      const ShownRows& to = rows_[parameter][static_cast<std::size_t>(replicas_.rank())];
      show_rows(taken_[parameter], own_slice_of(parameter), to);
    }
  }

  // Of a parameter that is alone in its bucket.
  Slice own_slice_of(std::size_t parameter) const {
    for (const Own& own : own_)
      if (own.slice.parameter == parameter) return own.slice;
    return {parameter, 0, 0, layout_.columns(parameter)};
  }

  std::unique_ptr<Communicator::Work> leave(std::size_t bucket) override {
    const std::size_t first = first_own_[bucket];
    const std::size_t last = bucket + 1 < first_own_.size() ? first_own_[bucket + 1] : own_.size();
    return replicas_.meet([this, first, last] {
      const at::NoGradGuard no_grad;
      for (std::size_t k = first; k < last; ++k) gradients_[k] = sum_of(own_[k]);
    });
  }

  at::Tensor sum_of(const Own& own) const {
    const at::Tensor& gradient = taken_[own.slice.parameter];
    const std::vector<ShownRows>& rows = rows_[own.slice.parameter];
    if (!rows.empty()) return sum_of_rows(gradient, own.slice, rows, replicas_.rank());
    return sum_in_order(own.slice.of(gradient), own.shown, replicas_.rank());
  }

  SliceLayout layout_;
  Communicator& replicas_;
  at::Tensor memory_;
  std::vector<Own> own_;                            // bucket by bucket
  std::vector<std::size_t> first_own_;              // of each bucket
  std::vector<std::vector<ForOthers>> for_others_;  // of each parameter
  std::vector<std::vector<ShownRows>> rows_;        // of each parameter: by each rank, where cut between rows
  std::vector<at::Tensor> taken_;                   // of each parameter, in this step
  std::vector<at::Tensor> gradients_;               // of own_
};

}  // namespace

std::unique_ptr<Reducer> sliced_reducer(const std::vector<networks::NamedParameter>& parameters,
                                        const SliceLayout& layout, Communicator& replicas) {
  const at::Tensor memory =
      replicas.allocate_shared(replicas.size() * layout.numbers(), parameters.front().value.scalar_type());
  if (!memory.defined()) return nullptr;
  return std::make_unique<SlicedReducer>(parameters, layout, replicas,
                                         memory.view({replicas.size(), layout.numbers()}));
}

}  // namespace trainyard::runner
