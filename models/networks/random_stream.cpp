#include "models/networks/random_stream.h"

#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include "base/sha256.h"
#include "models/networks/layer_parts.h"
#include "models/networks/libtorch_private.h"

namespace trainyard::networks {

std::uint64_t stream_seed(std::string_view purpose, std::uint64_t seed, std::string_view detail) {
  std::string name(purpose);
  name.append("/").append(std::to_string(seed)).append("/").append(detail);
  return std::stoull(sha256_hex(name).substr(0, 8), nullptr, 16);
}

at::Generator random_stream(std::string_view purpose, std::uint64_t seed, std::string_view detail) {
  return libtorch::cpu_generator(stream_seed(purpose, seed, detail));
}

InitialWeights::InitialWeights(std::string path, const Initialisation& start)
    : path_(std::move(path)),
      options_(start.options()),
      stream_(random_stream("weights", start.seed, path_)) {}

NamedParameter InitialWeights::drawn(const std::string& role, at::IntArrayRef sizes,
                                     const models::InitialRule& rule, at::MemoryFormat format) {
  const at::Tensor values = at::full(sizes, rule.value, at::kDouble);
  if (rule.kind == models::InitialRule::Kind::uniform) values.uniform_(-rule.value, rule.value, stream_);
  if (rule.kind == models::InitialRule::Kind::normal) values.normal_(rule.mean, rule.value, stream_);
  if (rule.zero_row) values.select(0, *rule.zero_row).zero_();
  return parameter(role, values, format);
}

NamedParameter InitialWeights::constant(const std::string& role, at::IntArrayRef sizes, double value) const {
  return parameter(role, at::full(sizes, value, options_));
}

NamedParameter InitialWeights::parameter(const std::string& role, const at::Tensor& whole,
                                         at::MemoryFormat format) const {
  const std::optional<models::Cut> cut = node_ == nullptr ? std::nullopt : cut_of(*node_, role, whole.dim());
  const at::Tensor values = (cut ? part_of(whole, *cut) : whole).to(options_.dtype()).clone(format);
  return {path_ + "." + role, values.to(options_).requires_grad_(), {}, cut};
}

double fan_in_bound(at::IntArrayRef weight_sizes) {
  return 1 / std::sqrt(static_cast<double>(c10::multiply_integers(weight_sizes.slice(1))));
}

}  // namespace trainyard::networks
