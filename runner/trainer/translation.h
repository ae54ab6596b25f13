// Translating with a trained network, and what that is worth.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/data/dataset.h"
#include "runner/data/task.h"

namespace trainyard::runner {

// Tokens int64 [batch] that the network finds likeliest after the given ones: {source int64 [batch, source
// tokens], target int64 [batch, tokens so far]}, the latter beginning with <bos>. Under every strategy all
// stages of a replica call it together and all get the answer.
using NextTokens = std::function<at::Tensor(const networks::Activations&)>;

// The likeliest tokens behind the last ones: of the network's output for such input, logits [batch, tokens,
// vocabulary] → int64 [batch].
at::Tensor last_tokens(const at::Tensor& logits);

// The likeliest token each time, until <eos>: for each sentence of `source` its tokens without <bos> and
// <eos>, at most longest_translation(its length). Sentences that have ended are not carried on.
std::vector<std::vector<std::int64_t>> translate(const at::Tensor& source, const NextTokens& next);

// 2 · (source tokens) + 2, and never more than 50.
std::int64_t longest_translation(std::int64_t source_tokens);

// Translates the samples of `data` (pairs of texts) at `places`, and adds bleu_1 … bleu_4 (sum: matched
// n-grams, weight: those of the translations) and bleu_length (sum: tokens of the translations, weight: of
// the references).
void add_bleu(MetricSums& sums, const Dataset& data, const at::Tensor& places, const NextTokens& next);

}  // namespace trainyard::runner
