// What a model is trained for, as a table: the loss of a batch as a sum, never a mean, and what counts as
// correct.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

enum class Target { label, input, next_token };

struct Task {
  std::string_view name;  // "classification", as in the catalogue
  Target target;          // what the output is held against

  // [], differentiable: the sum over what the task weighs (samples, non-padding tokens, pixels).
  at::Tensor (*loss_sum)(const at::Tensor& outputs, const at::Tensor& targets);
  // int64 []: how many of these are predicted right; nullptr where accuracy is not defined.
  at::Tensor (*correct)(const at::Tensor& outputs, const at::Tensor& targets);
  // int64 [positions]: those of the flattened targets that weigh anything; nullptr where all do. The
  // functions above give the same for outputs and targets at these positions only.
  at::Tensor (*positions)(const at::Tensor& targets);
};

// classification: cross entropy of logits [batch, classes] against labels int64 [batch], a sample weighs 1.
// reconstruction: squared error of [batch, channel, height, width] against images of that shape, a pixel of a
// channel weighs 1. translation: cross entropy of logits [batch, tokens, vocabulary] against tokens int64
// [batch, tokens], where a token weighs 1 and padding (0) nothing.
//
// UserError for an unknown name, with those that exist.
const Task& find_task(std::string_view name);

}  // namespace trainyard::runner
