#include "orchestrator/yard/journal.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "experiments/design/reference_results.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"
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
  nlohmann::json entry{{"v", experiments::format_version},
                       {"type", "run"},
                       {"time", experiments::utc_now()},
                       {"experiment", experiment.name},
                       {"file", experiment.file.string()},
                       {"toml", experiment.toml},
                       {"compare", compare},
                       {"expect", expect},
                       {"varied", experiment.varied},
                       {"data_seed", experiment.data_seed},
                       {"keys", keys},
                       {"strategies", strategies},
                       {"runs", runs}};
  if (experiment.published) entry["published"] = experiments::to_json(*experiment.published);
  for (const auto& profiled : data) entry["data_profiles"].push_back(experiments::to_json(profiled));
  if (!experiment.metrics.empty()) entry["metrics"] = experiments::to_json(experiment.metrics);
  if (!asked.is_null()) entry["asked"] = asked;
  return entry;
}

nlohmann::json rm_entry(const std::map<std::string, int>& attempts_by_key, const nlohmann::json& results) {
  nlohmann::json keys = nlohmann::json::array();
  for (const auto& [key, attempts] : attempts_by_key) keys.push_back(key);
  return {{"v", experiments::format_version}, {"type", "rm"},
          {"time", experiments::utc_now()},   {"keys", keys},
          {"attempts", attempts_by_key},      {"results", results}};
}

nlohmann::json retrain_entry(const nlohmann::json& results) {
  return {{"v", experiments::format_version},
          {"type", "retrain"},
          {"time", experiments::utc_now()},
          {"results", results}};
}

namespace {

[[noreturn]] void fail(const std::filesystem::path& journal, int error) {
  throw std::system_error(error, std::generic_category(), "cannot append to " + journal.string());
}

bool ends_within_a_line(int fd, off_t size) {
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

// A killed writer or a power cut may have left half a line. It is not an entry, so it is moved to
// journal.jsonl.damaged. A whole entry without its newline stays. Returns what the next entry begins with.
std::string end_last_line(const std::filesystem::path& journal, int fd, off_t size) {
  if (!ends_within_a_line(fd, size)) return "";
  const std::string text = whole_file(journal);
  const std::size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
  const std::string line = text.substr(begin);
  if (nlohmann::json::accept(line)) return "\n";
  const std::filesystem::path damaged = journal.string() + ".damaged";
  const auto kept = FileDescriptor::open(damaged, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (!kept) fail(damaged, errno);
  if (const int error = write_all(kept.get(), line + '\n'); error != 0) fail(damaged, error);
  if (::fsync(kept.get()) != 0) fail(damaged, errno);
  if (::ftruncate(fd, static_cast<off_t>(begin)) != 0) fail(journal, errno);
  return "";
}

}  // namespace

void append_to_journal(const std::filesystem::path& journal, const nlohmann::json& entry) {
  const auto fd = FileDescriptor::open(journal, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (!fd) fail(journal, errno);
  const std::string begin = end_last_line(journal, fd.get(), ::lseek(fd.get(), 0, SEEK_END));
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  int error = write_all(fd.get(), begin + experiments::sealed(entry.dump()) + '\n');
  if (error == 0 && ::fsync(fd.get()) != 0) error = errno;
  if (error != 0) {
    (void)!::ftruncate(fd.get(), size);  // if this fails too, the next entry removes the half line
    fail(journal, error);
  }
  if (size == 0) sync_folder(std::filesystem::absolute(journal).parent_path());  // the file may be new
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
      models::DataProfile profile = models::profile_of(models::read(run.data));
      profile.class_names = models::own_class_names(run.data);
      profiles.push_back({run.data.dataset, run.data.source, identity, std::move(profile)});
    }
  }
  return profiles;
}

}  // namespace trainyard::orchestrator
