// What an attempt's ranks are told: its folder, its run file, their command lines and environments.
#include "models/error.h"
#include "orchestrator/attempt.h"
#include "orchestrator/attempt_number.h"
#include "orchestrator/leftovers.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

// With the start times, a successor can tell these processes from later ones of the same pids.
nlohmann::ordered_json marks_of(const std::vector<int>& pids) {
  nlohmann::ordered_json start_ticks = nlohmann::ordered_json::array();
  for (const int pid : pids) {
    const auto mark = mark_of(pid);
    start_ticks.push_back(mark ? mark->start_ticks : 0);  // 0: it is gone already
  }
  return {{"pids", pids}, {"start_ticks", std::move(start_ticks)}};
}

}  // namespace

AttemptPlace Attempt::new_place(const Yard& yard, const PlannedRun& planned) {
  fs::create_directories(yard.run(planned.key));
  const int attempt = last_attempt(yard.run(planned.key)) + 1;
  const fs::path directory = yard.attempt(planned.key, attempt);
  fs::create_directory(directory);
  return {directory, planned.key, attempt, static_cast<int>(planned.devices.size())};
}

// Returns what stands in the run file.
nlohmann::json Attempt::write_run_file() const {
  const experiments::Launch launched = launch();
  experiments::write_launch(launched);
  return experiments::to_json(launched);
}

experiments::Launch Attempt::launch() const {
  experiments::Launch launch;
  launch.key = place_.key;
  launch.attempt = place_.attempt;
  launch.records = place_.directory;
  launch.experiment = workplace_.experiment;
  launch.run = planned_.run;
  launch.host_exclusive = host_exclusive_;
  launch.devices_shared = planned_.devices_shared;
  launch.circumstances = planned_.circumstances;
  launch.created = experiments::utc_now();
  for (const Device& device : devices_) {
    launch.devices.push_back(device.name);
    launch.cores.push_back(device.cores);
  }
  return launch;
}

void Attempt::launch_ranks() {
  const StoreAddress store = store_address();
  std::vector<int> pids;
  for (int rank = 0; rank < place_.world_size; ++rank) {
    ranks_.push_back({workplace_.launcher.launch(command(rank, store)), std::nullopt});
    pids.push_back(ranks_.back().process->pid());
  }
  record("launched", marks_of(pids));
}

// A foreign program does not keep its keys apart from those of other runs: it has a store of its own. A
// single rank needs none; a foreign one that wants one all the same makes it itself, on a free port.
StoreAddress Attempt::store_address() {
  if (place_.world_size == 1) return {"127.0.0.1", "0"};
  if (!foreign()) return workplace_.store.address();
  own_store_.emplace(workplace_.programs.store, place_.directory / "store.log", workplace_.launcher);
  return own_store_->address();
}

bool Attempt::foreign() const {
  return !planned_.run.strategy.command.empty();
}

RankCommand Attempt::command(int rank, const StoreAddress& store) const {
  const std::string ranks = std::to_string(place_.world_size);
  const Device& device = devices_.at(static_cast<std::size_t>(rank));
  const bool single = place_.world_size == 1;
  return {.argv = foreign() ? planned_.run.strategy.command
                            : std::vector<std::string>{workplace_.programs.runner.string()},
          .environment = {{"RANK", std::to_string(rank)},
                          {"LOCAL_RANK", std::to_string(rank)},
                          {"WORLD_SIZE", ranks},
                          {"LOCAL_WORLD_SIZE", ranks},
                          {"MASTER_ADDR", store.host},
                          {"MASTER_PORT", store.port},
                          {"TORCHELASTIC_RUN_ID", place_.key + "/" + std::to_string(place_.attempt)},
                          {"TORCHELASTIC_USE_AGENT_STORE", foreign() && single ? "False" : "True"},
                          {"OMP_NUM_THREADS", std::to_string(planned_.circumstances.threads_per_rank)},
                          {"TRAINYARD_RUN", run_file_.string()},
                          {token_variable, token_}},
          .cores = device.cores,
          .log = log(rank),
          .folder = planned_.run.strategy.folder};
}

fs::path Attempt::log(int rank) const {
  return place_.directory / experiments::rank_log_name(rank);
}

}  // namespace trainyard::orchestrator
