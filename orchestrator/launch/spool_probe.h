// Whether the nodes of a cluster share the folder of the runs with this host. Asked once, before the first
// run, by a task that looks for a file which was written here and writes one itself.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// The side that asks. Its files, and what its job printed, are gone with it.
class SpoolProbe {
 public:
  explicit SpoolProbe(std::filesystem::path runs);
  ~SpoolProbe();
  SpoolProbe(const SpoolProbe&) = delete;
  SpoolProbe& operator=(const SpoolProbe&) = delete;

  std::string job_name() const;
  std::vector<std::string> task(const Programs& programs) const;  // the command that answers

  // Whether it has come and says that all is well. UserError where it says that something is not.
  bool answered(const Programs& programs) const;

 private:
  std::filesystem::path runs_;
  std::string name_;
};

// Whether an earlier sweep of this yard has had the answer, and that this one has.
bool spool_was_seen(const Yard& yard);
void note_spool_seen(const Yard& yard);

// What to do where no answer comes, or a wrong one.
inline constexpr const char* share_the_spool =
    "let `spool` in [machine] name a folder that this host and all nodes share";

// The side that answers: writes `probe-NAME` into `folder`: whether this host sees what was asked, and can
// run `runner`. An exit code.
int answer_spool_probe(const std::filesystem::path& folder, const std::string& name,
                       const std::filesystem::path& runner);

}  // namespace trainyard::orchestrator
