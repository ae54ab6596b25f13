#include "runner/data/right_answers.h"

#include <algorithm>
#include <atomic>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "models/networks/vector_kernels.h"

namespace trainyard::runner {

namespace {

constexpr std::int64_t numbers_worth_a_thread = 1 << 15;

// `logits` contiguous: [rows, classes].
template <class Number>
std::int64_t count_right(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored) {
  const std::int64_t classes = logits.size(-1);
  const auto* numbers = logits.const_data_ptr<Number>();
  const auto* answer = answers.const_data_ptr<std::int64_t>();
  std::atomic<std::int64_t> right = 0;
  at::parallel_for(0, answers.numel(), std::max<std::int64_t>(numbers_worth_a_thread / classes, 1),
                   [&](std::int64_t begin, std::int64_t end) {
                     std::int64_t here = 0;
                     for (std::int64_t row = begin; row < end; ++row)
                       here += answer[row] != ignored &&
                               networks::is_first_largest(numbers + row * classes, classes, answer[row]);
                     right += here;
                   });
  return right;
}

}  // namespace

at::Tensor right_answers(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored) {
  const bool plain = logits.is_cpu() && logits.is_contiguous() &&
                     (logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble);
  if (!plain) return logits.argmax(-1).eq(answers).bitwise_and(answers.ne(ignored)).sum();
  const at::Tensor in_rows = answers.contiguous();
  std::int64_t right = 0;
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "right_answers",
                             [&] { right = count_right<scalar_t>(logits, in_rows, ignored); });
  return at::scalar_tensor(right, answers.options());
}

}  // namespace trainyard::runner
