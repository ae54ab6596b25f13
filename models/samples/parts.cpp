#include "models/samples/parts.h"

namespace trainyard::models {

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
