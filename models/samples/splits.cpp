#include "models/samples/splits.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "models/samples/random.h"

namespace trainyard::models {

namespace {

void check(const std::array<double, 3>& fractions) {
  const auto outside = [](double fraction) { return !(fraction >= 0 && fraction <= 1); };
  const double sum = fractions[0] + fractions[1] + fractions[2];
  if (std::any_of(fractions.begin(), fractions.end(), outside) || std::abs(sum - 1) > 1e-9) {
    throw UserError("the fractions of train, validation and test must be in [0, 1] and add up to 1");
  }
}

}  // namespace

std::int64_t train_size(std::int64_t samples, const std::array<double, 3>& fractions) {
  check(fractions);
  const std::int64_t train =
      std::min<std::int64_t>(std::llround(static_cast<double>(samples) * fractions[0]), samples);
  if (train == 0)
    throw UserError("of " + std::to_string(samples) + " samples the split leaves 0 to train on");
  return train;
}

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

std::array<double, 3> without_test(const std::array<double, 3>& fractions) {
  check(fractions);
  const double rest = fractions[0] + fractions[1];
  if (rest == 0)
    throw UserError("the split leaves nothing to train on: its fractions of train and validation are 0");
  return {fractions[0] / rest, fractions[1] / rest, 0};
}

std::array<double, 3> without_validation(const std::array<double, 3>& fractions) {
  check(fractions);
  const double rest = fractions[0] + fractions[2];
  if (rest == 0)
    throw UserError("the split leaves nothing to train on: its fractions of train and test are 0");
  return {fractions[0] / rest, 0, fractions[2] / rest};
}

std::array<double, 3> fractions_of(const DataChoice& choice, bool own_validation, bool own_test) {
  if (own_test && own_validation) return {1, 0, 0};
  if (own_test) return without_test(choice.split);
  if (own_validation) return without_validation(choice.split);
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
  throw UserError("train_samples is " + std::to_string(wanted) + ", but the training part of " +
                  choice.source + " has " + std::to_string(available) + " samples");
}

void check_fingerprint(const DataChoice& choice, const std::string& found) {
  if (choice.fingerprint.empty() || choice.fingerprint == found) return;
  const std::string where = choice.folder.empty() ? "" : " in " + choice.folder.string();
  throw UserError("the data of " + choice.source + where +
                      " is not what the run was planned with: its fingerprint is " + found.substr(0, 12) +
                      ", was " + choice.fingerprint.substr(0, 12),
                  "plan the run again");
}

}  // namespace trainyard::models
