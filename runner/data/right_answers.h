// How many answers are right, counted in one pass over the logits.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

// int64 []: of how many rows of `logits`, [..., classes], the first of the largest numbers is at the row's
// answer, int64 [...]. Rows whose answer is `ignored` do not count; other answers must be classes.
//
// What logits.argmax(-1).eq(answers) says, for all numbers but NaN. On a CPU LibTorch's argmax takes about
// ten times as long as the numbers take to be read: it keeps a place for each, and only whether one place
// wins is asked here.
at::Tensor right_answers(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored = -1);

}  // namespace trainyard::runner
