#include "models/samples/splits.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/samples/random.h"

namespace trainyard::models {

namespace {

void check(const std::array<double, 3>& fractions) {
  const auto outside = [](double fraction) { return !(fraction >= 0 && fraction <= 1); };
  const double sum = fractions[0] + fractions[1] + fractions[2];
  if (std::ranges::any_of(fractions, outside) || std::abs(sum - 1) > 1e-9) {
    throw UserError("the fractions of train, validation and test must be in [0, 1] and add up to 1");
  }
}

// The number of samples to train on.
std::int64_t train_size(std::int64_t samples, const std::array<double, 3>& fractions) {
  check(fractions);
  const std::int64_t train =
      std::min<std::int64_t>(std::llround(static_cast<double>(samples) * fractions[0]), samples);
  if (train == 0)
    throw UserError(fmt::format("the split leaves 0 of {} samples to train on", samples),
                    "increase the first number of data_split");
  return train;
}

// The fractions of train and `part`, in the same proportion. The third part is 0.
std::array<double, 3> only_train_and(std::size_t part, const char* name,
                                     const std::array<double, 3>& fractions) {
  check(fractions);
  const double rest = fractions[0] + fractions[part];
  if (rest == 0)
    throw UserError(
        fmt::format("the split leaves nothing to train on: its fractions of train and {} are 0", name),
        "increase the first number of data_split");
  std::array<double, 3> result{fractions[0] / rest, 0, 0};
  result.at(part) = fractions[part] / rest;
  return result;
}

}  // namespace

SplitIndices split_indices(std::int64_t samples, const std::array<double, 3>& fractions, std::uint64_t seed) {
  const std::int64_t train = train_size(samples, fractions);
  const auto count = static_cast<double>(samples);
  const std::int64_t validation_end =
      fractions[2] > 0
          ? std::min(std::llround(count * (fractions[0] + fractions[1])), static_cast<long long>(samples))
          : samples;
  const std::vector<std::int64_t> order = permutation(samples, seed);
  return {.train = {order.begin(), order.begin() + train},
          .validation = {order.begin() + train, order.begin() + validation_end},
          .test = {order.begin() + validation_end, order.end()}};
}

std::array<double, 3> fractions_of(const DataChoice& choice, bool own_validation, bool own_test) {
  if (own_test && own_validation) return {1, 0, 0};
  if (own_test) return only_train_and(1, "validation", choice.split);
  if (own_validation) return only_train_and(2, "test", choice.split);
  return choice.split;
}

std::int64_t training_samples(const DataChoice& choice, PartSizes sizes) {
  if (sizes.train == 0) std::swap(sizes.train, sizes.test);
  const auto fractions = fractions_of(choice, sizes.validation > 0, sizes.test > 0);
  return train_count(choice, train_size(sizes.train, fractions));
}

std::int64_t train_count(const DataChoice& choice, std::int64_t available) {
  const std::int64_t wanted = choice.train_samples.value_or(available);
  if (wanted >= 1 && wanted <= available) return wanted;
  throw UserError(fmt::format("train_samples is {}, but the training part of {} has {} samples", wanted,
                              choice.source, available),
                  fmt::format("use at most {}", available));
}

void check_fingerprint(const DataChoice& choice, const std::string& found) {
  if (choice.fingerprint.empty() || choice.fingerprint == found) return;
  const std::string place = choice.folder.empty() ? "" : " in " + choice.folder.string();
  throw UserError(
      fmt::format("the data of {}{} has changed since the run was planned: its fingerprint is {}, and was {}",
                  choice.source, place, found.substr(0, 12), choice.fingerprint.substr(0, 12)),
      "plan the run again");
}

}  // namespace trainyard::models
