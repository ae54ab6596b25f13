#include "runner/data/padded_sequences.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "models/samples/vocabulary.h"

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

void PaddedSequences::pad_to_longest() {
  columns_ = longest_;
}

void PaddedSequences::pad_as_for(const at::Tensor& places, std::int64_t from, std::int64_t until) {
  columns_ = 0;
  columns_ =
      repeated_length(longest(places, from, until), std::max<std::int64_t>(longest_ - from - until, 1)) +
      from + until;
}

std::int64_t PaddedSequences::longest(const at::Tensor& places, std::int64_t from, std::int64_t until) const {
  if (places.size(0) == 0) return 1;
  if (columns_ > 0) return std::max<std::int64_t>(columns_ - from - until, 1);
  const auto longest = lengths_.index_select(0, places).max().item<std::int64_t>();
  return std::max<std::int64_t>(longest - from - until, 1);
}

at::Tensor PaddedSequences::gather(const at::Tensor& places, std::int64_t from, std::int64_t until) const {
  const at::Tensor own = places.to(tokens_.device(), /*non_blocking=*/true);
  const at::Tensor columns = at::arange(longest(places, from, until), own.options());
  const at::Tensor ends = ends_.index_select(0, own).sub_(until).unsqueeze(1);
  const std::int64_t padding = tokens_.size(0) - 1;
  const at::Tensor token_places = begins_.index_select(0, own).add_(from).unsqueeze(1).add(columns);
  token_places.masked_fill_(token_places.ge(ends), padding);
  return tokens_.index_select(0, token_places.flatten()).view(token_places.sizes()).to(at::kLong);
}

}  // namespace trainyard::runner
