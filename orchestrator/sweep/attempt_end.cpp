// How an attempt went: finished, failed and by whose fault, or interrupted.
#include <algorithm>
#include <fstream>
#include <set>
#include <tuple>

#include "base/log.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/sweep/attempt.h"

namespace trainyard::orchestrator {

namespace {

// What ranks say when a peer has gone: a consequence, not a cause.
bool blames_a_peer(const std::string& error) {
  for (const char* text :
       {"losed by peer", "reset by peer", "onnection refused", "roken pipe", "imed out", "imeout"})
    if (error.find(text) != std::string::npos) return true;
  return false;
}

// "rank-1.records.jsonl:4": the last record of that type and epoch; without a line if there is none.
std::string place_of_record(const std::filesystem::path& file, const db::AttemptFault& fault) {
  std::ifstream in(file, std::ios::binary);
  int found = 0;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const auto parsed = experiments::parse_line(line);
    if (!parsed.record || parsed.record->type != fault.type) continue;
    const auto epoch = parsed.record->body.find("epoch");
    if (fault.epoch == 0 || (epoch != parsed.record->body.end() && *epoch == fault.epoch)) found = number;
  }
  return file.filename().string() + (found > 0 ? ":" + std::to_string(found) : "");
}

}  // namespace

// All ranks are gone: nothing of the attempt may stay, then how it went.
void Attempt::finish(const RankGroupEnd& end) {
  note_job();
  gang_.reset();
  if (const int left = end_children_with(token_); left > 0) {
    workplace_.status.message(experiments::label(planned_.run) + ": ended " + std::to_string(left) +
                              (left == 1 ? " process" : " processes") + " that its ranks had left behind");
    log::warning("processes left behind were ended", logged({{"processes", left}}));
  }
  collector_.collect();
  record_other_use();
  outcome_.preempted = end.kind == RankGroupEnd::Kind::preempted && !collector_.finished() && !stopped_;
  if (const auto fault = collector_.finished()
                             ? db::attempt_fault(workplace_.database, place_.key, place_.attempt)
                             : std::nullopt)
    fail_by_record(*fault);
  else if (collector_.finished())
    succeed();
  else if (end.kind == RankGroupEnd::Kind::not_started)
    fail(std::nullopt, end.why);
  else if (end.kind == RankGroupEnd::Kind::preempted && !stopped_)
    interrupt(end.why);
  else if (end.kind == RankGroupEnd::Kind::out_of_time && !stopped_)
    run_out_of_time(end.why);
  else if (end.kind == RankGroupEnd::Kind::over_limits && !stopped_)
    fail(first_dead(), end.why);
  else if (!deaths_.empty())
    fail_by(cause());
  else if (!hang_error_.empty())
    fail(life_.first_stalled_rank(), hang_error_);
  else
    interrupt(ending_why_);
  collector_.collect();
  outcome_.seconds = seconds();
  outcome_.test_accuracy = collector_.test_accuracy();
  outcome_.test_loss = collector_.test_loss();
  tell_messages();
  over_ = true;
}

// Each CPU once that a rank is pinned to; none if ranks run elsewhere.
std::vector<int> Attempt::leased_cores() const {
  std::set<int> cores;
  for (const Device& device : devices_) cores.insert(device.cores.begin(), device.cores.end());
  return {cores.begin(), cores.end()};
}

// Once all processes of the attempt are gone and waited for: only then is known what they took themselves.
void Attempt::record_other_use() {
  if (!before_launch_) return;
  const std::vector<int> cores = leased_cores();
  const auto use = other_use(*before_launch_, processor_times(), cores, with_hyper_threads(cores));
  const double limit = workplace_.options.others_limit;
  nlohmann::ordered_json body{{"cores", cores.size()}, {"limit", limit}};
  if (use)
    body.update({{"seconds", use->seconds},
                 {"other_seconds", use->other_seconds},
                 {"other_share", use->share},
                 {"stolen_seconds", use->stolen_seconds},
                 {"host_other_share", use->host_share}});
  const std::string problem = use ? use_problem(*use, limit) : "";
  if (!problem.empty()) body["why"] = problem;
  record("processor_use", body);
  if (!problem.empty()) log::warning("times do not count", logged({{"why", problem}}));
  if (!problem.empty() && collector_.finished() && !planned_.devices_shared)
    workplace_.status.message(experiments::label(planned_.run) + ": its times do not count: " + problem);
}

// A run that has kept an epoch more goes on from there, as often as it takes; else the next attempt would end
// where this one did.
void Attempt::run_out_of_time(const std::string& why) {
  const auto next = resume_point().at;
  const auto epochs = [](const std::optional<experiments::Resumes>& at) { return at ? at->after_epoch : 0; };
  if (epochs(next) <= epochs(begins_.at))
    return fail(std::nullopt, why + "; raise time_limit in [machine], or set checkpoint = \"epoch\"");
  outcome_.preempted = outcome_.progressed = true;
  interrupt(why + " after epoch " + std::to_string(epochs(next)));
}

void Attempt::succeed() {
  outcome_.kind = RunOutcome::Kind::finished;
  log::info("finished", logged({{"seconds", seconds()}}));
  remove_checkpoints(workplace_.yard, planned_.key);
}

void Attempt::fail(std::optional<int> rank, const std::string& error) {
  outcome_.kind = RunOutcome::Kind::failed;
  outcome_.first_error = error;
  nlohmann::ordered_json body{{"outcome", "failed"}};
  if (rank) body["of_rank"] = *rank;
  body["error"] = error;
  if (rank) {
    outcome_.log = rank_log(*rank).string();
    body["log"] = experiments::rank_log_name(*rank);
    for (const RankFailure& death : deaths_)
      if (death.rank != *rank)
        body["consequences"].push_back({{"of_rank", death.rank}, {"error", first_error(death)}});
  }
  log::Fields said{{"seconds", seconds()}, {"cause", error}};
  if (rank) said.insert(said.begin(), {"rank", *rank});
  if (rank) said.emplace_back("log", outcome_.log);
  log::error("failed", logged(said));
  record("cause", body);
  records_->sync();
}

// Its ranks say that they have finished, and what they have recorded cannot be.
void Attempt::fail_by_record(const db::AttemptFault& fault) {
  const auto folder = workplace_.yard.attempt(place_.key, fault.attempt);
  const std::string line = place_of_record(folder / experiments::rank_records_name(fault.rank), fault);
  const auto left_out = fault.type == "end" ? collector_.left_out(fault.rank) : std::nullopt;
  fail(fault.rank, fault.error + (left_out ? "; of its records " + *left_out : "") + " (" + line + ")");
}

// Whose log may say more.
std::optional<int> Attempt::first_dead() const {
  return deaths_.empty() ? std::nullopt : std::optional(cause().rank);
}

void Attempt::fail_by(const RankFailure& death) {
  fail(death.rank, first_error(death));
}

void Attempt::interrupt(const std::string& why) {
  outcome_.kind = RunOutcome::Kind::interrupted;
  outcome_.first_error = why;
  log::warning("interrupted", logged({{"seconds", seconds()}, {"why", why}}));
  record("cause", {{"outcome", "interrupted"}, {"error", why}});
  records_->sync();
}

std::string Attempt::first_error(const RankFailure& death) const {
  if (const auto said = collector_.error(death.rank)) return *said;
  const std::string by_signal = death.status.signal != 0 ? " (" + to_text(death.status) + ")" : "";
  if (const auto line = last_error_line(rank_log(death.rank))) return *line + by_signal;
  const std::string rank = "rank " + std::to_string(death.rank);
  if (death.status.clean()) {
    const auto left_out = collector_.left_out(death.rank);
    const std::string records = left_out ? "; of its records " + *left_out : "";
    return collector_.said_finished(death.rank)
               ? rank + " said that it has finished, but that record does not count" + records
               : rank + " ended without saying that it has finished" + records;
  }
  const auto line = death.status.signal == 0 ? last_line(rank_log(death.rank)) : std::nullopt;
  return line ? *line + " (" + to_text(death.status) + ")" : rank + ": " + to_text(death.status);
}

// Of the ranks that died, the one that did not die of another's death: a signal before an exit code, an error
// of its own before one about a peer, then the first that was seen.
const Attempt::RankFailure& Attempt::cause() const {
  const auto order = [this](const RankFailure& death) {
    return std::make_tuple(death.status.signal == 0, blames_a_peer(first_error(death)));
  };
  return *std::min_element(deaths_.begin(), deaths_.end(),
                           [&](const RankFailure& a, const RankFailure& b) { return order(a) < order(b); });
}

}  // namespace trainyard::orchestrator
