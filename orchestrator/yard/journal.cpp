#include "orchestrator/yard/journal.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "experiments/design/experiment.h"
#include "experiments/design/reference_results.h"
#include "experiments/protocol/record.h"
#include "experiments/run/run.h"

namespace trainyard::orchestrator {

nlohmann::json run_entry(const experiments::Experiment& experiment,
                         const std::vector<experiments::ProfiledData>& data, const nlohmann::json& asked) {
  nlohmann::json compare = nlohmann::json::array();
  for (const auto& one : experiment.compare) compare.push_back(experiments::to_json(one));
  nlohmann::json expect = nlohmann::json::array();
  for (const auto& one : experiment.expect) expect.push_back(experiments::to_json(one));
  nlohmann::json keys = nlohmann::json::array();
  nlohmann::json strategies = nlohmann::json::object();
  nlohmann::json runs = nlohmann::json::object();
  for (const auto& run : experiment.runs) {
    const std::string key = experiments::run_key(run);
    keys.push_back(key);
    strategies[key] = run.strategy.name;
    runs[key] = experiments::to_json(run);
  }
  const bool final_look = std::any_of(experiment.compare.begin(), experiment.compare.end(),
                                      [](const auto& one) { return one.final_look; });
  nlohmann::json entry{{"v", experiments::record_version},
                       {"type", "run"},
                       {"time", experiments::utc_now()},
                       {"experiment", experiment.name},
                       {"file", experiment.file.string()},
                       {"toml", experiment.toml},
                       {"compare", compare},
                       {"expect", expect},
                       {"varied", experiment.varied},
                       {"final", final_look},
                       {"data_seed", experiment.data_seed},
                       {"keys", keys},
                       {"strategies", strategies},
                       {"runs", runs}};
  if (experiment.published) entry["published"] = experiments::to_json(*experiment.published);
  for (const auto& profiled : data) entry["data_profiles"].push_back(experiments::to_json(profiled));
  if (!asked.is_null()) entry["asked"] = asked;
  return entry;
}

nlohmann::json rm_entry(const std::map<std::string, int>& attempts_by_key) {
  nlohmann::json keys = nlohmann::json::array();
  for (const auto& [key, attempts] : attempts_by_key) keys.push_back(key);
  return {{"v", experiments::record_version},
          {"type", "rm"},
          {"time", experiments::utc_now()},
          {"keys", keys},
          {"attempts", attempts_by_key}};
}

namespace {

[[noreturn]] void fail(const std::filesystem::path& journal) {
  throw std::system_error(errno, std::generic_category(), "cannot append to " + journal.string());
}

// A killed writer may have left half a line. The next entry must start on a new line.
bool ends_within_a_line(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

void append_to_journal(const std::filesystem::path& journal, const nlohmann::json& entry) {
  const auto fd = FileDescriptor::open(journal, O_RDWR | O_CREAT | O_APPEND);
  if (!fd) fail(journal);
  const std::string line = (ends_within_a_line(fd.get()) ? "\n" : "") + entry.dump() + "\n";
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) fail(journal);
  if (::fsync(fd.get()) != 0) fail(journal);
}

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
