#include "runner/data/row_dataset.h"

#include <ATen/ATen.h>

#include "runner/device/device.h"

namespace trainyard::runner {

RowDataset::RowDataset(const models::Rows& rows, at::ScalarType dtype)
    : values_(at::tensor(rows.values, dtype).view({rows.size(), rows.columns})),
      targets_(rows.labels.empty() ? at::tensor(rows.numbers, dtype) : at::tensor(rows.labels, at::kLong)),
      deviation_(rows.deviation) {}

networks::Activations RowDataset::inputs(const at::Tensor& indices) const {
  if (gathers_on_host()) return {fetched(values_, indices, targets_.device())};
  return {values_.index_select(0, indices.to(values_.device(), /*non_blocking=*/true))};
}

at::Tensor RowDataset::targets(const at::Tensor& indices) const {
  return targets_.index_select(0, indices.to(targets_.device(), /*non_blocking=*/true));
}

void RowDataset::serve(at::Device device, bool resident) {
  targets_ = targets_.to(device);
  values_ = resident ? values_.to(device) : values_.pin_memory();
}

}  // namespace trainyard::runner
