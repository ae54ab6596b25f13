// Two operations with gradients of their own: the mean of rows of a matrix, and a transposed convolution.
//
// The mean of some rows of a matrix: what an embedding makes of a text.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace trainyard::networks {

// [texts, columns]: of each text the mean of its rows of `matrix` [rows, columns]. `rows` int64 [words] are
// the rows of all texts, one text behind the other, `starts` int64 [texts] where each begins; a text without
// words has zeros. All on the CPU. The gradient of `matrix` is sparse and coalesced: it holds only the rows
// that were taken, so that neither making nor reading it costs more where the matrix has more rows.
at::Tensor mean_of_rows(const at::Tensor& matrix, const at::Tensor& rows, const at::Tensor& starts);

// The convolution that goes from few pixels to many, as an autoencoder's last layers do.

struct TransposedConvolution {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::array<std::int64_t, 2> output_padding{};  // height, width
};

// `at::conv_transpose2d` of images [batch, inputs, height, width] with `weight` [inputs, outputs, kernel,
// kernel] and `bias` [outputs]. To few outputs a CPU is faster by one matrix product, whose columns are added
// where they belong: of 16 channels to one picture of 28 × 28 in a sixth of the time.
at::Tensor transposed_convolution(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias,
                                  const TransposedConvolution& how);

}  // namespace trainyard::networks
