// Greedy decoding with a trained translation network, and its BLEU score.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/data/dataset.h"
#include "runner/data/task.h"

namespace trainyard::runner {

// The most probable next token of each sentence, int64 [batch]. The argument is {source int64 [batch, source
// tokens], target int64 [batch, tokens so far]}, and the target begins with <bos>. All stages of a replica
// call the function together, and all get the result.
using NextTokens = std::function<at::Tensor(const networks::Activations&)>;

// The most probable token at the last position: logits [batch, tokens, vocabulary] → int64 [batch].
at::Tensor last_tokens(const at::Tensor& logits);

// Greedy decoding until <eos>. Returns for each sentence of `source` its tokens without <bos> and <eos>, at
// most longest_translation(its length). Sentences that have ended are removed from the batch.
std::vector<std::vector<std::int64_t>> translate(const at::Tensor& source, const NextTokens& next);

// min(2 · (source tokens) + 2, 50)
std::int64_t longest_translation(std::int64_t source_tokens);

// Translates some samples of `data`, a data set of text pairs, and adds to `sums`:
// - bleu_1 … bleu_4: matched n-grams; the weight is the number of n-grams in the translations.
// - bleu_length: tokens of the translations; the weight is the number of tokens in the references.
void add_bleu(MetricSums& sums, const Dataset& data, const at::Tensor& indices, const NextTokens& next);

}  // namespace trainyard::runner
