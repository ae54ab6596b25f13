#include "runner/data/text_dataset.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "models/networks/stored_tensors.h"
#include "models/samples/tokenizer.h"

namespace trainyard::runner {

namespace {

at::Tensor with_padding_behind(const std::vector<std::int32_t>& tokens) {
  at::Tensor all = at::full({static_cast<std::int64_t>(tokens.size()) + 1}, models::pad_token, at::kInt);
  std::copy(tokens.begin(), tokens.end(), all.data_ptr<std::int32_t>());
  return all;
}

at::Tensor offsets_of(const models::Sequences& sequences) {
  at::Tensor offsets = at::empty({static_cast<std::int64_t>(sequences.offsets.size())}, at::kLong);
  std::copy(sequences.offsets.begin(), sequences.offsets.end(), offsets.data_ptr<std::int64_t>());
  return offsets;
}

}  // namespace

TextDataset::TextDataset(const models::Texts& texts, const std::optional<models::TextForm>& form)
    : tokens_(texts.tokens), labels_(at::empty({texts.size()}, at::kLong)), form_(form) {
  if (form && form->most > 0) tokens_.cut_to(form->most);
  if (form && form->length > 0) tokens_.pad_to(form->length);
  std::copy(texts.labels.begin(), texts.labels.end(), labels_.data_ptr<std::int64_t>());
}

networks::Activations TextDataset::inputs(const at::Tensor& indices) const {
  const at::Tensor tokens = tokens_.gather(indices);
  networks::Activations all{tokens};
  if (!form_) return all;
  for (const models::TextForm::Beside& each : form_->beside)
    all.push_back((each.mask ? tokens.ne(models::pad_token) : at::zeros_like(tokens))
                      .to(networks::scalar_type(each.dtype)));
  return all;
}

at::Tensor TextDataset::targets(const at::Tensor& indices) const {
  return labels_.index_select(0, indices.to(labels_.device(), /*non_blocking=*/true));
}

std::shared_ptr<const Dataset> TextDataset::in_step(const at::Tensor& indices) const {
  if (!form_ || form_->length > 0) return nullptr;
  auto padded = std::make_shared<TextDataset>(*this);
  padded->tokens_.pad_to_longest_of(indices);
  return padded;
}

// Text is always resident: a token has 4 bytes, and the largest data set of texts needs 1 % of a GPU.
void TextDataset::serve(at::Device device, bool) {
  tokens_.move_to(device);
  if (!form_) tokens_.pad_to_longest();  // the mean embedding ignores padding
  labels_ = labels_.to(device);
}

PairSplit::PairSplit(const models::TextPairs& pairs, bool reads_padding)
    : source_(pairs.source), target_(pairs.target), reads_padding_(reads_padding) {}

networks::Activations PairSplit::inputs(const at::Tensor& indices) const {
  return {source_.gather(indices), target_.gather(indices, 0, 1)};
}

void PairSplit::serve(at::Device device, bool) {
  source_.move_to(device);
  target_.move_to(device);
}

std::vector<std::int64_t> PairSplit::shape(const at::Tensor& indices) const {
  return {indices.size(0), source_.longest(indices), indices.size(0), target_.longest(indices, 0, 1)};
}

std::int64_t PairSplit::weight_of(const at::Tensor& indices) const {
  return target_.lengths().index_select(0, indices).sum().item<std::int64_t>() - indices.size(0);
}

std::shared_ptr<const Dataset> PairSplit::padded_like(const at::Tensor& indices) const {
  auto padded = std::make_shared<PairSplit>(*this);
  padded->source_.pad_as_for(indices);
  padded->target_.pad_as_for(indices, 0, 1);
  return padded;
}

std::shared_ptr<const Dataset> PairSplit::in_step(const at::Tensor& indices) const {
  if (!reads_padding_) return nullptr;
  auto padded = std::make_shared<PairSplit>(*this);
  padded->source_.pad_to_longest_of(indices);
  padded->target_.pad_to_longest_of(indices);
  return padded;
}

at::Tensor PairSplit::length_keys() const {
  constexpr std::int64_t longest = 1 << 20;  // upper limit for the tokens of a source
  const at::Tensor &source = source_.lengths(), &target = target_.lengths();
  const at::Tensor odd = target.remainder(2).to(at::kBool);
  return target * (2 * longest) + at::where(odd, source, -source);
}

WindowSplit::WindowSplit(const models::Windows& windows) {
  const std::vector<std::int32_t>& all = windows.tokens.tokens;
  const std::int64_t count = windows.size();
  tokens_ = at::empty({count, count > 0 ? static_cast<std::int64_t>(all.size()) / count : 0}, at::kInt);
  std::ranges::copy(all, tokens_.data_ptr<std::int32_t>());
}

at::Tensor WindowSplit::windows_at(const at::Tensor& indices) const {
  return tokens_.index_select(0, indices.to(tokens_.device(), /*non_blocking=*/true)).to(at::kLong);
}

networks::Activations WindowSplit::inputs(const at::Tensor& indices) const {
  return {windows_at(indices).slice(1, 0, -1).contiguous()};
}

at::Tensor WindowSplit::targets(const at::Tensor& indices) const {
  return windows_at(indices).slice(1, 1).contiguous();
}

std::int64_t repeated_length(std::int64_t length, std::int64_t longest) {
  constexpr std::int64_t multiple = 4;
  return std::min((length + multiple - 1) / multiple * multiple, longest);
}

PaddedSequences::PaddedSequences(const models::Sequences& sequences)
    : tokens_(with_padding_behind(sequences.tokens)) {
  const at::Tensor offsets = offsets_of(sequences);
  begins_ = offsets.slice(0, 0, -1);
  ends_ = offsets.slice(0, 1);
  lengths_ = offsets.diff();
  longest_ = size() > 0 ? lengths_.max().item<std::int64_t>() : 0;
}

void PaddedSequences::move_to(at::Device device) {
  for (at::Tensor* part : {&tokens_, &begins_, &ends_}) *part = part->to(device);
}

void PaddedSequences::cut_to(std::int64_t most) {
  lengths_ = lengths_.clamp_max(most);
  ends_ = begins_ + lengths_;
  longest_ = std::min(longest_, most);
}

void PaddedSequences::pad_to_longest_of(const at::Tensor& indices) {
  columns_ = 0;
  columns_ = longest(indices);
}

void PaddedSequences::pad_as_for(const at::Tensor& indices, std::int64_t from, std::int64_t until) {
  columns_ = 0;
  columns_ =
      repeated_length(longest(indices, from, until), std::max<std::int64_t>(longest_ - from - until, 1)) +
      from + until;
}

std::int64_t PaddedSequences::longest(const at::Tensor& indices, std::int64_t from,
                                      std::int64_t until) const {
  if (indices.size(0) == 0) return 1;
  if (columns_ > 0) return std::max<std::int64_t>(columns_ - from - until, 1);
  const auto longest = lengths_.index_select(0, indices).max().item<std::int64_t>();
  return std::max<std::int64_t>(longest - from - until, 1);
}

at::Tensor PaddedSequences::gather(const at::Tensor& indices, std::int64_t from, std::int64_t until) const {
  const at::Tensor own = indices.to(tokens_.device(), /*non_blocking=*/true);
  const at::Tensor columns = at::arange(longest(indices, from, until), own.options());
  const at::Tensor ends = ends_.index_select(0, own).sub_(until).unsqueeze(1);
  const std::int64_t padding = tokens_.size(0) - 1;
  const at::Tensor token_indices = begins_.index_select(0, own).add_(from).unsqueeze(1).add(columns);
  token_indices.masked_fill_(token_indices.ge(ends), padding);
  return tokens_.index_select(0, token_indices.flatten()).view(token_indices.sizes()).to(at::kLong);
}

}  // namespace trainyard::runner
