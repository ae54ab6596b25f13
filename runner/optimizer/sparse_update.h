// A step of an optimizer for a matrix of which few rows have a gradient. All rows are updated, as the dense
// kernel does: momentum goes on without gradients too. But the gradient's zeros are neither written nor read,
// which is what costs where the matrix is larger than the caches. Equal to the dense kernel to rounding.
#pragma once

#include <cstdint>

namespace trainyard::runner {

// Rows of a matrix; each `columns` numbers, one behind the other.
struct GivenRows {
  const std::int64_t* rows;  // [count], ascending
  const float* values;       // [count, columns]
  std::int64_t count;
};

struct MatrixPart {
  std::int64_t begin;  // rows begin … end − 1 are updated
  std::int64_t end;
  std::int64_t columns;
};

// v ← momentum · v + (g + weight_decay · p), in the first step v ← g + weight_decay · p;  p ← p −
// learning_rate · v. Without momentum `velocity` is null.
struct SgdStep {
  float learning_rate;
  float momentum;
  float weight_decay;
  bool first;
};
void update_rows(const SgdStep& step, const MatrixPart& part, float* parameter, float* velocity,
                 const GivenRows& gradient);

// m ← m + (1 − β₁)(g − m);  v ← β₂ v + (1 − β₂) g²;  p ← p − step_size · m / (root_scale · √v + ε), where
// weight decay was added to g, or p multiplied by `keep` first (AdamW).
struct AdamStep {
  float step_size;   // learning rate / (1 − β₁ᵗ)
  float root_scale;  // 1 / √(1 − β₂ᵗ)
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;  // of the gradient
  float keep;          // 1 − learning rate · decoupled weight decay
};
void update_rows(const AdamStep& step, const MatrixPart& part, float* parameter, float* mean, float* square,
                 const GivenRows& gradient);

}  // namespace trainyard::runner
