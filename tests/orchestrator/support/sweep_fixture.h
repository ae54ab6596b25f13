// A yard in a temporary folder, an experiment of mlp runs, fake programs and a status that stores its events.
// The environment variables of the fake ranks are unset at the end.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "db/queries/queries.h"
#include "orchestrator/sweep/sweep.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::orchestrator {

struct TemporaryFolder {
  tests::ScratchFolder scratch;
  const std::filesystem::path path = scratch.path();
};

struct RememberingStatus : Status {
  void sweep_started(const Plan&) override {}
  void run_started(const PlannedRun& run, int attempt) override;
  void run_progress(const PlannedRun& run, const experiments::Progress& progress) override;
  void run_ended(const PlannedRun& run, const RunOutcome& outcome) override;
  void not_needed(std::size_t) override {}
  void message(const std::string& text) override { messages.push_back(text); }
  void sweep_ended() override {}

  std::vector<std::string> events;             // "start <label> <attempt>", "end <label>"
  std::map<std::string, RunOutcome> outcomes;  // by label
  std::vector<experiments::Progress> progress;
  std::vector<std::string> messages;
  std::function<void()> on_progress;
  std::function<void(const RunOutcome&)> on_end;
};

experiments::Run mlp_run(const std::string& strategy, std::int64_t replicas, std::uint64_t seed);

// Four ranks: two replicas with two stages each.
experiments::Run mesh_run(std::uint64_t seed);

class SweepFixture {
 public:
  explicit SweepFixture(std::vector<experiments::Run> runs);
  ~SweepFixture();
  SweepFixture(const SweepFixture&) = delete;
  SweepFixture& operator=(const SweepFixture&) = delete;

  void on_message(const std::string& rank, const std::string& what);  // "" means all ranks
  Plan plan() const;
  SweepResult sweep();
  Failure only_failure();  // of a sweep
  void journal();          // as `trainyard run` does before a sweep
  std::filesystem::path attempt(std::size_t run, int number = 1) const;
  std::string key(std::size_t run) const;
  std::string status_of(std::size_t run, int number = 1) const;  // in the database

  TemporaryFolder folder;
  Yard yard;
  db::Database database;
  experiments::Experiment experiment;
  std::vector<Device> devices;
  Programs programs;
  RememberingStatus status;
  std::atomic<int> stop = 0;
  SweepOptions options;

 private:
  std::vector<std::string> variables_;
};

experiments::Circumstances machine_circumstances(const Programs& programs);
std::string text_of(const std::filesystem::path& file);
bool have_two_cores();  // if not, the test is skipped with a message
bool alive(int pid);    // false for a zombie
int pid_in(const std::filesystem::path& file);
bool becomes_true(double seconds, const std::function<bool()>& condition);  // polls
double seconds_of(const std::function<void()>& work);
std::vector<std::string> record_types(const std::filesystem::path& spool);

}  // namespace trainyard::orchestrator
