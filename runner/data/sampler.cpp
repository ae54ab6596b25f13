#include "runner/data/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/sha256.h"

namespace trainyard::runner {

namespace {

std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

struct NamedSampling {
  const char* name;
  Sampling sampling;
};

constexpr std::array samplings{NamedSampling{"exact", Sampling::exact},
                               NamedSampling{"distributed", Sampling::distributed}};

}  // namespace

Part part_of(const Part& whole, std::int64_t part, std::int64_t parts) {
  const std::int64_t each = whole.size() / parts;
  const std::int64_t larger = whole.size() % parts;  // so many parts have one more
  const std::int64_t begin = whole.begin + part * each + std::min(part, larger);
  return {begin, begin + each + (part < larger ? 1 : 0)};
}

Sampling find_sampling(std::string_view name) {
  return models::named_row(samplings, &NamedSampling::name, "sampler", name).sampling;
}

Sampler::Sampler(std::int64_t samples, std::int64_t global_batch, std::int64_t replica, std::int64_t replicas,
                 Sampling sampling)
    : samples_(samples),
      filled_up_(sampling == Sampling::exact ? samples : round_up(samples, replicas)),
      global_batch_(global_batch),
      replica_(replica),
      replicas_(replicas),
      sampling_(sampling) {
  if (sampling == Sampling::distributed && global_batch % replicas != 0) {
    throw UserError("sampler \"distributed\" gives each replica equally much, but a global batch of " +
                        std::to_string(global_batch) + " samples does not divide by " +
                        std::to_string(replicas) + " replicas",
                    "give the batch per replica, or take sampler \"exact\"");
  }
}

std::int64_t Sampler::steps() const {
  return (filled_up_ + global_batch_ - 1) / global_batch_;
}

Part Sampler::global_batch(std::int64_t step) const {
  return {step * global_batch_, std::min((step + 1) * global_batch_, filled_up_)};
}

Part Sampler::part(std::int64_t step) const {
  return part_of(global_batch(step), replica_, replicas_);
}

at::Tensor Sampler::places(const at::Tensor& order, std::int64_t step) const {
  return own_part(places_of_all(order, step), step);
}

at::Tensor Sampler::own_part(const at::Tensor& batch, std::int64_t step) const {
  if (sampling_ == Sampling::distributed)
    return batch.slice(0, replica_, batch.size(0), replicas_).contiguous();
  const std::int64_t begin = global_batch(step).begin;
  const Part own = part(step);
  return batch.slice(0, own.begin - begin, own.end - begin);
}

at::Tensor Sampler::places_of_all(const at::Tensor& order, std::int64_t step) const {
  const Part all = global_batch(step);
  if (sampling_ == Sampling::exact) return order.slice(0, all.begin, all.end);
  return order.index_select(0, at::arange(all.begin, all.end, at::kLong).remainder_(samples_));
}

std::string Sampler::batches_hash(const at::Tensor& order) const {
  static_assert(std::endian::native == std::endian::little);
  models::Sha256 hash;
  for (std::int64_t step = 0; step < steps(); ++step) {
    const at::Tensor batch = places_of_all(order, step).contiguous();
    hash.update(std::string_view(static_cast<const char*>(batch.const_data_ptr()), batch.nbytes()));
  }
  return hash.hex();
}

Share Sampler::share(const SplitData& data, const at::Tensor& order, std::int64_t step) const {
  const at::Tensor batch = places_of_all(order, step);
  const at::Tensor own = own_part(batch, step);
  const std::int64_t divisor =
      sampling_ == Sampling::exact ? data.weight(batch) : replicas_ * data.weight(own);
  return {own, divisor, batch};
}

}  // namespace trainyard::runner
