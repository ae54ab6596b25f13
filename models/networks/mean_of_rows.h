// The mean of some rows of a matrix: what an embedding makes of a text.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainyard::networks {

// [texts, columns]: of each text the mean of its rows of `matrix` [rows, columns]. `rows` int64 [words] are
// the rows of all texts, one text behind the other, `starts` int64 [texts] where each begins; a text without
// words has zeros. All on the CPU. The gradient of `matrix` is sparse and coalesced: it holds only the rows
// that were taken, so that neither making nor reading it costs more where the matrix has more rows.
at::Tensor mean_of_rows(const at::Tensor& matrix, const at::Tensor& rows, const at::Tensor& starts);

}  // namespace trainyard::networks
