// Texts as tensors: a batch is padded to its longest, or to a length that is not its own alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/samples/samples.h"
#include "runner/data/dataset.h"

namespace trainyard::runner {

// Sequences of tokens of different lengths as tensors: all tokens one behind the other and where each
// sequence begins, of which a batch is gathered in a few operations, filled up with padding to its longest
// sequence; or to one of few lengths, so that shapes repeat.

// The next multiple of 4, but never more than `longest`, which is that of all data. Multiples of 8 would be
// half as many lengths, and in batches of like lengths (runner/data/sampler.h) a quarter of all columns
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

// Labelled texts; a sample weighs 1.
class TextDataset final : public Dataset {
 public:
  explicit TextDataset(const models::Texts& texts);
  std::int64_t size() const override { return tokens_.size(); }
  networks::Activations inputs(const at::Tensor& places) const override;  // {int64 [batch, tokens]}
  at::Tensor targets(const at::Tensor& places) const override;            // int64 [batch]
  std::vector<std::int64_t> shape(const at::Tensor& places) const override;
  std::int64_t weight(const at::Tensor& places) const override;
  at::Tensor length_keys() const override { return tokens_.lengths(); }
  std::unique_ptr<Dataset> augmented(std::string_view kind, std::uint64_t, std::int64_t) const override;
  void serve(at::Device device, bool resident) override;
  std::int64_t nbytes() const override { return tokens_.nbytes(); }

 private:
  PaddedSequences tokens_;
  at::Tensor labels_;  // int64 [sample]
};

// Texts and their translations. The network sees the source and the target without its last token, and is to
// say the target without its first (<bos>); each token of that weighs 1, padding nothing.
class PairSplit final : public Dataset {
 public:
  explicit PairSplit(const models::TextPairs& pairs);
  std::int64_t size() const override { return source_.size(); }
  // {source int64 [batch, source tokens], target_in int64 [batch, target tokens − 1]}
  networks::Activations inputs(const at::Tensor& places) const override;
  at::Tensor targets(const at::Tensor& places) const override;  // int64 [batch, target tokens − 1]
  std::vector<std::int64_t> shape(const at::Tensor& places) const override;
  std::int64_t weight(const at::Tensor& places) const override;
  std::shared_ptr<const Dataset> padded_like(const at::Tensor& places) const override;
  // By target, and among equally long targets by source: upwards where the target's length is odd, downwards
  // where it is even, so that neighbours are alike in both.
  at::Tensor length_keys() const override;
  std::unique_ptr<Dataset> augmented(std::string_view kind, std::uint64_t, std::int64_t) const override;
  void serve(at::Device device, bool resident) override;
  std::int64_t nbytes() const override { return source_.nbytes() + target_.nbytes(); }

 private:
  PaddedSequences source_;
  PaddedSequences target_;
};

}  // namespace trainyard::runner
