#include "runner/optimizer/sparse_update.h"

#include <algorithm>
#include <cmath>

#include "models/networks/vector_kernels.h"

namespace trainyard::runner {

namespace {

// Calls `update(offset, count, gradient)` for each row with a gradient, and with a null gradient for each run
// of rows without one.
template <class Update>
void for_each_run(const MatrixPart& part, const GivenRows& gradient, const Update& update) {
  const std::int64_t* const last = gradient.rows + gradient.count;
  const std::int64_t* next = std::lower_bound(gradient.rows, last, part.begin);
  std::int64_t row = part.begin;
  for (; next != last && *next < part.end; ++next) {
    if (*next > row) update(row * part.columns, (*next - row) * part.columns, nullptr);
    update(*next * part.columns, part.columns, gradient.values + (next - gradient.rows) * part.columns);
    row = *next + 1;
  }
  if (row < part.end) update(row * part.columns, (part.end - row) * part.columns, nullptr);
}

TRAINYARD_EACH_PROCESSOR
void sgd(const SgdStep& step, float* __restrict p, const float* __restrict g, std::int64_t count) {
  const SgdStep s = step;
  for (std::int64_t i = 0; i < count; ++i)
    p[i] -= s.learning_rate * ((g ? g[i] : 0.0F) + s.weight_decay * p[i]);
}

TRAINYARD_EACH_PROCESSOR
void sgd_with_momentum(const SgdStep& step, float* __restrict p, float* __restrict v,
                       const float* __restrict g, std::int64_t count) {
  const SgdStep s = step;
  const float momentum = s.first ? 0.0F : s.momentum;
  for (std::int64_t i = 0; i < count; ++i) {
    v[i] = momentum * v[i] + ((g ? g[i] : 0.0F) + s.weight_decay * p[i]);
    p[i] -= s.learning_rate * v[i];
  }
}

TRAINYARD_EACH_PROCESSOR
void adam(const AdamStep& step, float* __restrict p, float* __restrict m, float* __restrict v,
          const float* __restrict g, std::int64_t count) {
  const AdamStep s = step;
  for (std::int64_t i = 0; i < count; ++i) {
    const float kept = p[i] * s.keep;
    const float slope = (g ? g[i] : 0.0F) + s.weight_decay * kept;
    m[i] += (1 - s.beta1) * (slope - m[i]);
    v[i] = s.beta2 * v[i] + (1 - s.beta2) * slope * slope;
    p[i] = kept - s.step_size * m[i] / (std::sqrt(v[i]) * s.root_scale + s.epsilon);
  }
}

}  // namespace

void update_rows(const SgdStep& step, const MatrixPart& part, float* parameter, float* velocity,
                 const GivenRows& gradient) {
  for_each_run(part, gradient, [&](std::int64_t offset, std::int64_t count, const float* given) {
    if (velocity == nullptr)
      sgd(step, parameter + offset, given, count);
    else
      sgd_with_momentum(step, parameter + offset, velocity + offset, given, count);
  });
}

void update_rows(const AdamStep& step, const MatrixPart& part, float* parameter, float* mean, float* square,
                 const GivenRows& gradient) {
  for_each_run(part, gradient, [&](std::int64_t offset, std::int64_t count, const float* given) {
    adam(step, parameter + offset, mean + offset, square + offset, given, count);
  });
}

}  // namespace trainyard::runner
