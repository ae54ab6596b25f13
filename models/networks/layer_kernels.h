// Two operations with their own gradients: the mean of rows of a matrix, and a transposed convolution.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace trainyard::networks {

// The mean of the embeddings of each text: [texts, columns]. All tensors are on the CPU.
// - `matrix` [rows, columns].
// - `rows` int64 [words]: the rows of the words of all texts, text after text.
// - `starts` int64 [texts]: the index in `rows` at which each text begins. A text without words has mean 0.
// - The gradient of `matrix` is sparse and coalesced: it has only the used rows.
at::Tensor mean_of_rows(const at::Tensor& matrix, const at::Tensor& rows, const at::Tensor& starts);

// Parameters of a transposed convolution.
struct TransposedConvolution {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::array<std::int64_t, 2> output_padding{};  // height, width
};

// `at::conv_transpose2d`, faster on a CPU if there are few output channels.
// - `images` [batch, inputs, height, width], `weight` [inputs, outputs, kernel, kernel], `bias` [outputs].
// - With at most four outputs a CPU computes one matrix product and adds up its columns. From 16 channels to
//   one image of 28 × 28 that takes a sixth of the time.
at::Tensor transposed_convolution(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias,
                                  const TransposedConvolution& how);

}  // namespace trainyard::networks
