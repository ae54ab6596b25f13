// Texts as tensors. A batch is padded to its longest sequence, or to a length that other batches share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/samples/samples.h"
#include "runner/data/dataset.h"

namespace trainyard::runner {

// The next multiple of 4, but at most `longest`, the longest sequence of all data. With multiples of 8, a
// quarter of all columns would be padding instead of a tenth (Multi30k, 128 sentences per batch, sorted as in
// runner/data/sampler.h).
std::int64_t repeated_length(std::int64_t length, std::int64_t longest);

// Token sequences of different lengths, stored as one tensor of all tokens and the start of each sequence. A
// batch is gathered in a few operations and padded to its longest sequence, or to a length that repeats.
class PaddedSequences {
 public:
  explicit PaddedSequences(const models::Sequences& sequences);
  std::int64_t size() const { return lengths_.size(0); }
  const at::Tensor& lengths() const { return lengths_; }  // int64 [sequence], in tokens

  // Moves the tokens to `device`, so that `gather` returns tensors there. Lengths stay on the CPU too.
  void move_to(at::Device device);
  // Makes `gather` pad every batch to the longest sequence of all, so that shapes do not depend on the batch.
  void pad_to_longest() { columns_ = longest_; }
  void pad_to(std::int64_t columns) { columns_ = columns; }
  void cut_to(std::int64_t most);
  // Makes `gather` pad every batch to the longest of the sequences at `indices`.
  void pad_to_longest_of(const at::Tensor& indices);
  // Makes `gather` pad every batch like [from, length − until) of the sequences at `indices`, rounded up to a
  // repeated length. Other values of `from` and `until` change the number of columns by the difference.
  void pad_as_for(const at::Tensor& indices, std::int64_t from = 0, std::int64_t until = 0);
  std::int64_t nbytes() const { return static_cast<std::int64_t>(tokens_.nbytes()); }

  // The number of columns of `gather`: the longest of [from, length − until) at `indices`, at least 1.
  std::int64_t longest(const at::Tensor& indices, std::int64_t from = 0, std::int64_t until = 0) const;

  // Tokens [from, length − until) of each sequence at `indices`, followed by padding: int64 [batch] →
  // int64 [batch, longest]. At least one column.
  at::Tensor gather(const at::Tensor& indices, std::int64_t from = 0, std::int64_t until = 0) const;

 private:
  at::Tensor tokens_;         // int32 [token + 1]; the last is padding
  at::Tensor begins_;         // int64 [sequence]
  at::Tensor ends_;           // int64 [sequence]
  at::Tensor lengths_;        // int64 [sequence], on the CPU
  std::int64_t columns_ = 0;  // columns for complete sequences; 0: the longest of the batch
  std::int64_t longest_ = 0;  // of all sequences
};

// Labelled texts. The weight of a sample is 1.
class TextDataset final : public Dataset {
 public:
  // `form`: of a network that reads padding. Without it, padding changes nothing.
  explicit TextDataset(const models::Texts& texts, const std::optional<models::TextForm>& form = {});
  std::int64_t size() const override { return tokens_.size(); }
  // {int64 [batch, tokens]}, then what the form has beside them
  networks::Activations inputs(const at::Tensor& indices) const override;
  at::Tensor targets(const at::Tensor& indices) const override;  // int64 [batch]
  std::vector<std::int64_t> shape(const at::Tensor& indices) const override {
    return {indices.size(0), tokens_.longest(indices)};
  }
  std::shared_ptr<const Dataset> in_step(const at::Tensor& indices) const override;
  std::int64_t weight_of(const at::Tensor& indices) const override { return indices.size(0); }
  at::Tensor length_keys() const override { return tokens_.lengths(); }
  void serve(at::Device device, bool resident) override;
  std::int64_t nbytes() const override { return tokens_.nbytes(); }

 private:
  PaddedSequences tokens_;
  at::Tensor labels_;  // int64 [sample]
  std::optional<models::TextForm> form_;
};

// Texts and their translations. The inputs are the source, and the target without its last token. The network
// predicts the target without its first token (<bos>). Each predicted token has weight 1, padding has 0.
class PairSplit final : public Dataset {
 public:
  // `reads_padding`: as a network may that PyTorch exported.
  explicit PairSplit(const models::TextPairs& pairs, bool reads_padding = false);
  std::int64_t size() const override { return source_.size(); }
  // {source int64 [batch, source tokens], target_in int64 [batch, target tokens − 1]}
  networks::Activations inputs(const at::Tensor& indices) const override;
  at::Tensor targets(const at::Tensor& indices) const override {  // int64 [batch, target tokens − 1]
    return target_.gather(indices, 1, 0);
  }
  std::vector<std::int64_t> shape(const at::Tensor& indices) const override;
  std::int64_t weight_of(const at::Tensor& indices) const override;
  std::shared_ptr<const Dataset> padded_like(const at::Tensor& indices) const override;
  std::shared_ptr<const Dataset> in_step(const at::Tensor& indices) const override;
  // Sorts by the length of the target, then by the length of the source. The source order is ascending if the
  // target's length is odd and descending if it is even, so that neighbours are similar in both.
  at::Tensor length_keys() const override;
  void serve(at::Device device, bool resident) override;
  std::int64_t nbytes() const override { return source_.nbytes() + target_.nbytes(); }

 private:
  PaddedSequences source_;
  PaddedSequences target_;
  bool reads_padding_;
};

// Windows of a text, all of one length, so that there is no padding. The input is a window without its last
// token. The network predicts the window without its first token. Each predicted token has weight 1.
class WindowSplit final : public Dataset {
 public:
  explicit WindowSplit(const models::Windows& windows);
  std::int64_t size() const override { return tokens_.size(0); }
  networks::Activations inputs(const at::Tensor& indices) const override;  // {int64 [batch, tokens − 1]}
  at::Tensor targets(const at::Tensor& indices) const override;            // int64 [batch, tokens − 1]
  std::vector<std::int64_t> shape(const at::Tensor& indices) const override {
    return {indices.size(0), tokens_.size(1) - 1};
  }
  std::int64_t weight_of(const at::Tensor& indices) const override {
    return indices.size(0) * (tokens_.size(1) - 1);
  }
  void serve(at::Device device, bool /*resident*/) override { tokens_ = tokens_.to(device); }
  std::int64_t nbytes() const override { return static_cast<std::int64_t>(tokens_.nbytes()); }

 private:
  at::Tensor windows_at(const at::Tensor& indices) const;

  at::Tensor tokens_;  // int32 [window, tokens]
};

}  // namespace trainyard::runner
