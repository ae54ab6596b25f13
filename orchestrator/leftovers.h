// Processes that outlive what started them: a rank's grandchild in a session of its own, or what a killed
// orchestrator left behind. A process is known by the run file in its environment, never by its name, so that
// nobody else's process is ever ended.
#pragma once

#include <filesystem>
#include <vector>

namespace trainyard::orchestrator {

// While it lives, orphaned descendants of this process become its children instead of init's.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

// Kills and reaps all children of this process, adopted ones too, that have TRAINYARD_RUN = `run_file`.
// Returns how many there were.
int end_children_of_run(const std::filesystem::path& run_file);

// Kills the processes among `pids`, and of the groups and sessions they led, that have TRAINYARD_RUN =
// `run_file`; waits until they are gone, two seconds at most. Returns how many there were.
int end_launched(const std::vector<int>& pids, const std::filesystem::path& run_file);

}  // namespace trainyard::orchestrator
