// Optimizer steps for a matrix with a sparse gradient. All rows are updated, as by the dense kernel, because
// momentum also moves rows without a gradient. But the zeros of the gradient are neither written nor read,
// which saves time if the matrix is larger than the caches. The results equal the dense kernel up to
// rounding.
#pragma once

#include <cstdint>

namespace trainyard::runner {

// A sparse gradient.
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

// v ← momentum · v + (g + weight_decay · p), or in the first step v ← g + weight_decay · p
// p ← p − learning_rate · v
// `velocity` is null without momentum.
struct SgdStep {
  float learning_rate;
  float momentum;
  float weight_decay;
  bool first;
};
void update_rows(const SgdStep& step, const MatrixPart& part, float* parameter, float* velocity,
                 const GivenRows& gradient);

// m ← m + (1 − β₁)(g − m)
// v ← β₂ v + (1 − β₂) g²
// p ← p − step_size · m / (root_scale · √v + ε)
// Before that, weight decay is added to g (Adam), or p is multiplied by `keep` (AdamW).
struct AdamStep {
  float step_size;   // learning rate / (1 − β₁ᵗ)
  float root_scale;  // 1 / √(1 − β₂ᵗ)
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;  // added to the gradient
  float keep;          // 1 − learning rate · decoupled weight decay
};
void update_rows(const AdamStep& step, const MatrixPart& part, float* parameter, float* mean, float* square,
                 const GivenRows& gradient);

}  // namespace trainyard::runner
