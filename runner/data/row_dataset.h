// Rows of a table as tensors. The targets are numbers or labels. The weight of a sample is 1.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/samples/samples.h"
#include "runner/data/dataset.h"

namespace trainyard::runner {

class RowDataset final : public Dataset {
 public:
  RowDataset(const models::Rows& rows, at::ScalarType dtype);
  std::int64_t size() const override { return targets_.size(0); }
  networks::Activations inputs(const at::Tensor& indices) const override;  // {[batch, columns]}
  at::Tensor targets(const at::Tensor& indices) const override;            // int64 or `dtype`, [batch]
  std::int64_t weight_of(const at::Tensor& indices) const override { return indices.size(0); }
  double target_deviation() const override { return deviation_; }
  void serve(at::Device device, bool resident) override;
  bool gathers_on_host() const override { return values_.device() != targets_.device(); }
  std::int64_t nbytes() const override { return static_cast<std::int64_t>(values_.nbytes()); }

 private:
  at::Tensor values_;   // [sample, column]
  at::Tensor targets_;  // [sample], on the device of batches
  double deviation_;
};

}  // namespace trainyard::runner
