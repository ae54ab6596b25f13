#include "models/parts.h"

namespace trainyard::models {

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
