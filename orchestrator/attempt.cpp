#include "orchestrator/attempt.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <tuple>

#include "models/error.h"
#include "orchestrator/leftovers.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr auto follow_interval = std::chrono::milliseconds(100);
constexpr auto progress_interval = std::chrono::milliseconds(200);

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

// One more than the largest attempt there is.
int next_attempt(const fs::path& run_folder) {
  int last = 0;
  for (const auto& entry : fs::directory_iterator(run_folder)) {
    const std::string name = entry.path().filename();
    int number = 0;
    if (name.rfind("attempt-", 0) == 0 &&
        std::from_chars(name.data() + 8, name.data() + name.size(), number).ec == std::errc{})
      last = std::max(last, number);
  }
  return last + 1;
}

AttemptPlace new_place(const Yard& yard, const PlannedRun& planned) {
  fs::create_directories(yard.run(planned.key));
  const int attempt = next_attempt(yard.run(planned.key));
  const fs::path directory = yard.attempt(planned.key, attempt);
  fs::create_directory(directory);
  return {directory, planned.key, attempt, static_cast<int>(planned.devices.size())};
}

// What ranks say when a peer has gone: a consequence, not a cause.
bool blames_a_peer(const std::string& error) {
  for (const char* text :
       {"losed by peer", "reset by peer", "onnection refused", "roken pipe", "imed out", "imeout"})
    if (error.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

Attempt::Attempt(const PlannedRun& planned, std::vector<Device> devices, bool host_exclusive,
                 Workplace workplace)
    : planned_(planned),
      devices_(std::move(devices)),
      host_exclusive_(host_exclusive),
      workplace_(workplace),
      place_(new_place(workplace.yard, planned)),
      run_file_(place_.directory / experiments::run_file_name),
      collector_(place_, workplace.database, workplace.ingest) {
  start();
}

Attempt::~Attempt() = default;

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

void Attempt::start() {
  const experiments::Launch launched = launch();
  experiments::write_launch(launched);
  workplace_.ingest.run_file(experiments::to_json(launched));
  records_.emplace(place_.directory / experiments::orchestrator_records_name, place_.key, place_.attempt,
                   std::nullopt);
  record("leased", {{"devices", launched.devices}});
  workplace_.status.run_started(planned_, place_.attempt);
  try {
    launch_ranks();
  } catch (const UserError& error) {
    launch_error_ = error.what();
    ranks_.clear();
  }
}

void Attempt::launch_ranks() {
  const StoreAddress store =
      place_.world_size > 1 ? workplace_.store.address() : StoreAddress{"127.0.0.1", "0"};
  std::vector<int> pids;
  for (int rank = 0; rank < place_.world_size; ++rank) {
    ranks_.push_back({workplace_.launcher.launch(command(rank, store)), std::nullopt});
    pids.push_back(ranks_.back().process->pid());
  }
  record("launched", {{"pids", pids}});
}

RankCommand Attempt::command(int rank, const StoreAddress& store) const {
  const std::string ranks = std::to_string(place_.world_size);
  const Device& device = devices_.at(static_cast<std::size_t>(rank));
  return {.argv = {workplace_.programs.runner.string()},
          .environment = {{"RANK", std::to_string(rank)},
                          {"LOCAL_RANK", std::to_string(rank)},
                          {"WORLD_SIZE", ranks},
                          {"LOCAL_WORLD_SIZE", ranks},
                          {"MASTER_ADDR", store.host},
                          {"MASTER_PORT", store.port},
                          {"TORCHELASTIC_RUN_ID", place_.key + "/" + std::to_string(place_.attempt)},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                          {"OMP_NUM_THREADS", std::to_string(planned_.circumstances.threads_per_rank)},
                          {"TRAINYARD_RUN", run_file_.string()}},
          .cores = device.cores,
          .log = log(rank)};
}

fs::path Attempt::log(int rank) const {
  return place_.directory / experiments::rank_log_name(rank);
}

double Attempt::seconds() const {
  return std::chrono::duration<double>(Clock::now() - started_).count();
}

void Attempt::record(const std::string& type, const nlohmann::ordered_json& body) {
  records_->append(type, body);
  collector_.collect();
}

bool Attempt::step() {
  if (over_) return false;
  poll_ranks();
  follow();
  enforce();
  if (all_ended()) finish();
  return !over_;
}

void Attempt::poll_ranks() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].ended) continue;
    ranks_[rank].ended = ranks_[rank].process->poll();
    if (ranks_[rank].ended) note_exit(static_cast<int>(rank), *ranks_[rank].ended);
  }
}

void Attempt::note_exit(int rank, const ExitStatus& status) {
  record("exited", {{"of_rank", rank}, {"code", status.code}, {"signal", status.signal}});
  if (collector_.finished(rank) || terminated_ || killed_) return;
  deaths_.push_back({rank, status});
  if (terminate_at_ || all_ended()) return;
  terminate_at_ = Clock::now() + duration(workplace_.options.peer_seconds);
  kill_at_ = *terminate_at_ + duration(workplace_.options.grace_seconds);
  ending_why_ = "rank " + std::to_string(rank) + " has ended before the run did";
}

// Records and progress, at most as often as a person can see.
void Attempt::follow() {
  const auto now = Clock::now();
  if (now < next_follow_) return;
  next_follow_ = now + follow_interval;
  collector_.collect();
  for (const auto& text : collector_.take_messages())
    workplace_.status.message(experiments::label(planned_.run) + ": " + text);
  if (now < next_progress_) return;
  next_progress_ = now + progress_interval;
  // The last stage of the first replica: the other stages know no loss.
  const auto rank = static_cast<int>(planned_.run.strategy.stages) - 1;
  const auto progress = experiments::read_progress(place_.directory / experiments::rank_progress_name(rank));
  workplace_.status.run_progress(planned_, progress.value_or(experiments::Progress{}));
}

void Attempt::stop(int level) {
  if (over_ || level <= 0) return;
  const auto now = Clock::now();
  if (!stopped_) {
    stopped_ = true;
    ending_why_ = "the sweep was told to stop";
    terminate_at_ = std::min(terminate_at_.value_or(now), now);
    kill_at_ = std::min(kill_at_.value_or(Clock::time_point::max()),
                        now + duration(workplace_.options.grace_seconds));
  }
  if (level >= 2) kill_at_ = std::min(*kill_at_, now);
}

void Attempt::enforce() {
  const auto now = Clock::now();
  if (all_ended()) return;
  if (kill_at_ && now >= *kill_at_) {
    if (!killed_) signal_all(SIGKILL, ending_why_);
    killed_ = true;
  } else if (terminate_at_ && now >= *terminate_at_) {
    if (!terminated_) signal_all(SIGTERM, ending_why_);
    terminated_ = true;
  }
}

void Attempt::signal_all(int number, const std::string& why) {
  for (Rank& rank : ranks_)
    if (!rank.ended) rank.process->signal(number);
  record("signalled", {{"signal", number}, {"why", why}});
}

bool Attempt::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended.has_value(); });
}

// All ranks are gone: nothing of the attempt may stay, then how it went.
void Attempt::finish() {
  ranks_.clear();
  end_children_of_run(run_file_);
  collector_.collect();
  if (collector_.finished())
    outcome_.kind = RunOutcome::Kind::finished;
  else if (!launch_error_.empty())
    fail(std::nullopt, launch_error_);
  else if (!deaths_.empty())
    fail(cause().rank, first_error(cause()));
  else
    interrupt();
  outcome_.seconds = seconds();
  outcome_.test_accuracy = collector_.test_accuracy();
  outcome_.test_loss = collector_.test_loss();
  for (const auto& text : collector_.take_messages())
    workplace_.status.message(experiments::label(planned_.run) + ": " + text);
  over_ = true;
}

void Attempt::fail(std::optional<int> rank, const std::string& error) {
  outcome_.kind = RunOutcome::Kind::failed;
  outcome_.first_error = error;
  nlohmann::ordered_json body{{"outcome", "failed"}};
  if (rank) body["of_rank"] = *rank;
  body["error"] = error;
  if (rank) {
    outcome_.log = log(*rank).string();
    body["log"] = experiments::rank_log_name(*rank);
  }
  record("cause", body);
  records_->sync();
}

void Attempt::interrupt() {
  outcome_.kind = RunOutcome::Kind::interrupted;
  outcome_.first_error = ending_why_;
  record("cause", {{"outcome", "interrupted"}, {"error", ending_why_}});
  records_->sync();
}

std::string Attempt::first_error(const Death& death) const {
  if (const auto said = collector_.error(death.rank)) return *said;
  const std::string by_signal = death.status.signal != 0 ? " (" + to_text(death.status) + ")" : "";
  if (const auto line = last_error_line(log(death.rank))) return *line + by_signal;
  const std::string rank = "rank " + std::to_string(death.rank);
  if (death.status.clean()) return rank + " ended without saying that it has finished";
  return rank + ": " + to_text(death.status);
}

// Of the ranks that died, the one that did not die of another's death: a signal before an exit code, an error
// of its own before one about a peer, then the first that was seen.
const Attempt::Death& Attempt::cause() const {
  const auto order = [this](const Death& death) {
    return std::make_tuple(death.status.signal == 0, blames_a_peer(first_error(death)));
  };
  return *std::min_element(deaths_.begin(), deaths_.end(),
                           [&](const Death& a, const Death& b) { return order(a) < order(b); });
}

}  // namespace trainyard::orchestrator
