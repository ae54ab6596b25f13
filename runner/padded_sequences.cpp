#include "runner/padded_sequences.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "models/vocabulary.h"

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

PaddedSequences::PaddedSequences(const models::Sequences& sequences)
    : tokens_(with_padding_behind(sequences.tokens)) {
  const at::Tensor offsets = offsets_of(sequences);
  begins_ = offsets.slice(0, 0, -1);
  lengths_ = offsets.diff();
}

std::int64_t PaddedSequences::longest(const at::Tensor& places, std::int64_t from, std::int64_t until) const {
  if (places.size(0) == 0) return 1;
  const auto longest = lengths_.index_select(0, places).max().item<std::int64_t>();
  return std::max<std::int64_t>(longest - from - until, 1);
}

at::Tensor PaddedSequences::gather(const at::Tensor& places, std::int64_t from, std::int64_t until) const {
  const at::Tensor lengths = lengths_.index_select(0, places).sub_(from + until);
  const at::Tensor columns = at::arange(longest(places, from, until), at::kLong);
  const at::Tensor begins = begins_.index_select(0, places).add_(from);
  const std::int64_t padding = tokens_.size(0) - 1;
  const at::Tensor token_places =
      begins.unsqueeze(1).add(columns).masked_fill_(columns.ge(lengths.unsqueeze(1)), padding);
  return tokens_.index_select(0, token_places.flatten()).view(token_places.sizes()).to(at::kLong);
}

}  // namespace trainyard::runner
