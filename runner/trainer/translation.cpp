#include "runner/trainer/translation.h"

#include <algorithm>
#include <span>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/samples/tokenizer.h"

namespace trainyard::runner {

namespace {

std::span<const std::int64_t> numbers(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
}

// The sentences that have not ended: their index in the batch, and the inputs of the network.
struct Going {
  at::Tensor sentences;  // int64 [going]: index in the batch
  at::Tensor source;     // int64 [going, source tokens]
  at::Tensor target;     // int64 [going, tokens so far]
  at::Tensor limits;     // int64 [going]: maximum of tokens

  explicit Going(const at::Tensor& all)
      : sentences(at::arange(all.size(0), at::kLong)),
        source(all),
        target(at::full({all.size(0), 1}, models::begin_token, at::kLong)),
        limits(at::empty({all.size(0)}, at::kLong)) {
    const at::Tensor lengths = all.ne(models::pad_token).sum(1);
    std::transform(numbers(lengths).begin(), numbers(lengths).end(), limits.data_ptr<std::int64_t>(),
                   longest_translation);
  }

  void append(const at::Tensor& tokens) { target = at::cat({target, tokens.unsqueeze(1)}, 1); }

  // Removes sentences that end with <eos> or have reached their limit.
  void drop_ended() {
    const at::Tensor last = target.select(1, -1);
    const at::Tensor on =
        last.ne(models::end_token).logical_and_(limits.gt(target.size(1) - 1)).nonzero().flatten();
    if (on.size(0) == sentences.size(0)) return;
    for (at::Tensor* rows : {&sentences, &source, &target, &limits}) *rows = rows->index_select(0, on);
  }
};

// The tokens of a row of targets before <eos>.
std::span<const std::int64_t> words(const at::Tensor& targets, std::int64_t row) {
  const auto all = numbers(targets[row]);
  return all.first(
      static_cast<std::size_t>(std::find(all.begin(), all.end(), models::end_token) - all.begin()));
}

}  // namespace

at::Tensor last_tokens(const at::Tensor& logits) {
  return logits.select(1, -1).argmax(1);
}

std::int64_t longest_translation(std::int64_t source_tokens) {
  constexpr std::int64_t most = 50;
  return std::min(2 * source_tokens + 2, most);
}

std::vector<std::vector<std::int64_t>> translate(const at::Tensor& source, const NextTokens& next) {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<std::int64_t>> translations(static_cast<std::size_t>(source.size(0)));
  Going going(source);
  while (going.sentences.size(0) > 0) {
    const at::Tensor tokens = next({going.source, going.target}).contiguous();
    const auto sentence = numbers(going.sentences);
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      const std::int64_t token = numbers(tokens)[i];
      if (token != models::end_token) translations[static_cast<std::size_t>(sentence[i])].push_back(token);
    }
    going.append(tokens);
    going.drop_ended();
  }
  return translations;
}

void add_bleu(MetricSums& sums, const Dataset& data, const at::Tensor& indices, const NextTokens& next) {
  const auto translations = translate(data.inputs(indices).front().cpu(), next);
  const at::Tensor targets = data.targets(indices).cpu().contiguous();
  BleuSums bleu;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    bleu.add(translations[i], words(targets, static_cast<std::int64_t>(i)));
  }
  for (std::size_t n = 0; n < bleu.matched.size(); ++n) {
    sums.add("bleu_" + std::to_string(n + 1), bleu.matched[n], bleu.candidates[n]);
  }
  sums.add("bleu_length", bleu.candidate_length, bleu.reference_length);
}

}  // namespace trainyard::runner
