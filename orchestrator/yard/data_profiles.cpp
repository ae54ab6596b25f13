#include "orchestrator/yard/data_profiles.h"

#include <algorithm>

namespace trainyard::orchestrator {

std::vector<experiments::ProfiledData> data_profiles(const experiments::Experiment& experiment,
                                                     const std::vector<experiments::ProfiledData>& known) {
  std::vector<experiments::ProfiledData> profiles;
  const auto find = [](const std::vector<experiments::ProfiledData>& some, const std::string& identity) {
    return std::ranges::find(some, identity, &experiments::ProfiledData::identity);
  };
  for (const experiments::Run& run : experiment.runs) {
    if (!run.declared.dataset_title.empty()) continue;  // only the program can read it
    const std::string identity = experiments::identity_of(run.data);
    if (find(profiles, identity) != profiles.end()) continue;
    if (const auto found = find(known, identity); found != known.end()) {
      profiles.push_back(*found);
    } else {
      profiles.push_back(
          {run.data.dataset, run.data.source, identity, models::profile_of(models::read(run.data))});
    }
  }
  return profiles;
}

}  // namespace trainyard::orchestrator
