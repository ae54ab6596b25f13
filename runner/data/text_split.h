// Texts as tensors: a batch is padded to its longest, or to a length that is not its own alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/data/padded_sequences.h"
#include "runner/data/split_data.h"

namespace trainyard::runner {

// Labelled texts; a sample weighs 1.
class TextSplit final : public SplitData {
 public:
  explicit TextSplit(const models::Texts& texts);
  std::int64_t size() const override { return tokens_.size(); }
  networks::Activations inputs(const at::Tensor& places) const override;  // {int64 [batch, tokens]}
  at::Tensor targets(const at::Tensor& places) const override;            // int64 [batch]
  std::vector<std::int64_t> shape(const at::Tensor& places) const override;
  std::int64_t weight(const at::Tensor& places) const override;
  at::Tensor length_keys() const override { return tokens_.lengths(); }
  std::unique_ptr<SplitData> augmented(std::string_view kind, std::uint64_t, std::int64_t) const override;
  void serve(at::Device device, bool resident) override;
  std::int64_t nbytes() const override { return tokens_.nbytes(); }

 private:
  PaddedSequences tokens_;
  at::Tensor labels_;  // int64 [sample]
};

// Texts and their translations. The network sees the source and the target without its last token, and is to
// say the target without its first (<bos>); each token of that weighs 1, padding nothing.
class PairSplit final : public SplitData {
 public:
  explicit PairSplit(const models::TextPairs& pairs);
  std::int64_t size() const override { return source_.size(); }
  // {source int64 [batch, source tokens], target_in int64 [batch, target tokens − 1]}
  networks::Activations inputs(const at::Tensor& places) const override;
  at::Tensor targets(const at::Tensor& places) const override;  // int64 [batch, target tokens − 1]
  std::vector<std::int64_t> shape(const at::Tensor& places) const override;
  std::int64_t weight(const at::Tensor& places) const override;
  std::shared_ptr<const SplitData> padded_as_for(const at::Tensor& places) const override;
  // By target, and among equally long targets by source: upwards where the target's length is odd, downwards
  // where it is even, so that neighbours are alike in both.
  at::Tensor length_keys() const override;
  std::unique_ptr<SplitData> augmented(std::string_view kind, std::uint64_t, std::int64_t) const override;
  void serve(at::Device device, bool resident) override;
  std::int64_t nbytes() const override { return source_.nbytes() + target_.nbytes(); }

 private:
  PaddedSequences source_;
  PaddedSequences target_;
};

}  // namespace trainyard::runner
