#include "orchestrator/launch/spool_probe.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/host_name.h"
#include "base/whole_file.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/rank/gang_file.h"
#include "orchestrator/rank/leftovers.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* seen_name = "slurm-sees-spool";

fs::path question(const fs::path& folder, const std::string& name) {
  return folder / ("asked-" + name);
}
fs::path answer(const fs::path& folder, const std::string& name) {
  return folder / ("probe-" + name);
}

}  // namespace

SpoolProbe::SpoolProbe(fs::path runs) : runs_(std::move(runs)), name_(new_token().substr(0, 12)) {
  write_whole_file(question(runs_, name_), "\n");
}

SpoolProbe::~SpoolProbe() {
  std::error_code ignored;
  for (const auto& file : {question(runs_, name_), answer(runs_, name_), runs_ / slurm_log_name})
    fs::remove(file, ignored);
}

std::string SpoolProbe::job_name() const {
  return "trainyard-probe-" + name_;
}

std::vector<std::string> SpoolProbe::task(const Programs& programs) const {
  return {programs.task.string(), "--probe", runs_.string(), name_, programs.runner.string()};
}

bool SpoolProbe::answered(const Programs& programs) const {
  fresh_listing(runs_);
  const auto said = nlohmann::json::parse(whole_file(answer(runs_, name_)), nullptr, false);
  if (!said.is_object()) return false;
  const std::string host = said.value("host", "a node");
  if (!said.value("sees", false))
    throw UserError("a job on " + host + " does not see a file that was written here, in " + runs_.string(),
                    share_the_spool);
  if (!said.value("runs", false))
    throw UserError("a job on " + host + " cannot run " + programs.runner.string(),
                    "install trainyard where all nodes see it");
  return true;
}

bool spool_was_seen(const Yard& yard) {
  return whole_file(yard.root() / seen_name) == yard.runs().string() + "\n";
}

void note_spool_seen(const Yard& yard) {
  write_whole_file(yard.root() / seen_name, yard.runs().string() + "\n");
}

int answer_spool_probe(const fs::path& folder, const std::string& name, const fs::path& runner) {
  if (!fs::is_directory(folder)) return 1;
  const nlohmann::ordered_json json = {{"host", models::host_name()},
                                       {"sees", fs::exists(question(folder, name))},
                                       {"runs", ::access(runner.c_str(), X_OK) == 0}};
  write_whole_file(answer(folder, name), json.dump() + "\n");
  return 0;
}

}  // namespace trainyard::orchestrator
