// Sequences of tokens of different lengths as tensors: all tokens one behind the other and where each
// sequence begins, of which a batch is gathered in a few operations, filled up with padding to its longest
// sequence; or to one of few lengths, so that shapes repeat.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "models/samples/samples.h"

namespace trainyard::runner {

// The next multiple of 4, but never more than `longest`, which is that of all data. Multiples of 8 would be
// half as many lengths, and in batches of like lengths (runner/data/epoch_order.h) a quarter of all columns
// would be padding where now it is a tenth (Multi30k, 128 sentences a batch).
std::int64_t repeated_length(std::int64_t length, std::int64_t longest);

class PaddedSequences {
 public:
  explicit PaddedSequences(const models::Sequences& sequences);
  std::int64_t size() const { return lengths_.size(0); }
  const at::Tensor& lengths() const { return lengths_; }  // int64 [sequence], in tokens

  // Has `gather` yield tensors on `device`: tokens move there, lengths are known on the CPU too.
  void move_to(at::Device device);
  // Has `gather` make as many columns as the longest sequence of all, whatever is gathered, so that nothing
  // depends on what the host knows of a batch.
  void pad_to_longest();
  // Has `gather` make for whatever places as many columns as it makes for [from, length − until) of those at
  // `places`, rounded up to a repeated length; elsewhere in a sequence so many more or fewer.
  void pad_as_for(const at::Tensor& places, std::int64_t from = 0, std::int64_t until = 0);
  std::int64_t nbytes() const { return static_cast<std::int64_t>(tokens_.nbytes()); }

  // How many columns `gather` makes: the longest of [from, length − until) at `places`, at least 1.
  std::int64_t longest(const at::Tensor& places, std::int64_t from = 0, std::int64_t until = 0) const;

  // Tokens [from, length − until) of each sequence at `places`, int64 [batch] → int64 [batch, longest],
  // padding behind them; at least one column.
  at::Tensor gather(const at::Tensor& places, std::int64_t from = 0, std::int64_t until = 0) const;

 private:
  at::Tensor tokens_;         // int32 [token + 1]; the last is padding
  at::Tensor begins_;         // int64 [sequence]
  at::Tensor ends_;           // int64 [sequence]
  at::Tensor lengths_;        // int64 [sequence], on the CPU
  std::int64_t columns_ = 0;  // of whole sequences; 0: as the batch wants it
  std::int64_t longest_ = 0;  // of all
};

}  // namespace trainyard::runner
