#include "orchestrator/sweep/attempt.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "db/database/record_faults.h"
#include "db/queries/queries.h"
#include "orchestrator/plan/membership.h"
#include "orchestrator/rank/log_limit.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/yard/record_log_tail.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto follow_interval = std::chrono::milliseconds(100);
constexpr auto progress_interval = std::chrono::milliseconds(200);

// "rank-1.records.jsonl:4": place of the record with the fault, else of the last one of that type and epoch.
// Without a line if there is none.
std::string place_of_record(const std::filesystem::path& file, const db::AttemptFault& fault) {
  const auto has_fault = [&](const experiments::Record& record) {
    if (fault.seq) return record.seq == *fault.seq;
    if (record.type != fault.type) return false;
    const auto epoch = record.body.find("epoch");
    return fault.epoch == 0 || (epoch != record.body.end() && *epoch == fault.epoch);
  };
  RecordLogTail log(file);
  std::int64_t found = 0, number = 0;
  do
    for (const std::string& line : log.new_lines()) {
      ++number;
      const auto parsed = experiments::parse_line(line);
      if (parsed.record && has_fault(*parsed.record)) found = number;
    }
  while (!log.at_end());
  return file.filename().string() + (found > 0 ? ":" + std::to_string(found) : "");
}

std::int64_t epochs_of(const std::optional<experiments::Resumes>& at) {
  return at ? at->after_epoch : 0;
}

}  // namespace

Attempt::Attempt(Assignment assignment, Workplace workplace)
    : assignment_(std::move(assignment)),
      workplace_(workplace),
      place_(make_place()),
      begins_(assignment_.adopts ? ResumePoint{experiments::read_launch(run_file_of(place_)).resumes, {}}
                                 : resume_point()),
      token_(new_token()),
      collector_(place_, run_file(), workplace.ingest),
      log_(place_, experiments::label(planned().run), workplace.status,
           workplace.ingest.next_number(place_.key, place_.attempt, std::nullopt)),
      ranks_(place_, workplace.options, collector_, log_),
      next_follow_(Clock::now() + follow_interval) {
  try {
    assignment_.adopts ? adopt() : launch();
  } catch (...) {
    end_at_once();
    throw;
  }
}

Attempt::~Attempt() {
  if (ranks_.has_ranks()) end_at_once();
}

void Attempt::end_at_once() {
  ranks_.release();
  end_children_with(token_);
}

AttemptPlace Attempt::make_place() const {
  const auto ranks = static_cast<int>(assignment_.devices.size());
  if (!assignment_.adopts) return new_attempt(workplace_.yard, workplace_.database, planned(), ranks);
  AttemptPlace place = known_attempt(workplace_.yard, planned(), *assignment_.adopts, ranks);
  place.world_size = static_cast<int>(experiments::read_launch(run_file_of(place)).strategy().world_size());
  return place;
}

ResumePoint Attempt::resume_point() const {
  return planned().run.checkpoint.empty()
             ? ResumePoint{}
             : find_resume_point(workplace_.yard, workplace_.database, planned());
}

nlohmann::json Attempt::run_file() const {
  if (assignment_.adopts) return experiments::to_json(experiments::read_launch(run_file_of(place_)));
  const auto launch = launch_of(assignment_, place_, workplace_.yard, workplace_.experiment, begins_.at);
  experiments::write_launch(launch);
  return experiments::to_json(launch);
}

void Attempt::launch() {
  std::vector<std::string> names;
  for (const Device& device : assignment_.devices) names.push_back(device.name);
  log_.record("leased",
              {{"devices", names}, {"token", token_}, {"boot_id", boot_id()}, {"since_ticks", ticks_now()}});
  workplace_.status.run_started(planned(), place_.attempt);
  report_start();
  try {
    if (const std::string changed = experiments::changed_file(planned().run.strategy); !changed.empty())
      throw UserError(changed);
    if (assignment_.host_exclusive && !leased_cores(assignment_.devices).empty())
      other_use_.emplace(leased_cores(assignment_.devices));
    auto ranks = workplace_.launcher.launch(launch_spec_of(assignment_, place_, workplace_.programs, token_));
    const auto marks = ranks->marks();
    ranks_.watch(std::move(ranks), false);
    log_.record("launched", marks);
    log_launch("launched", marks);
  } catch (const UserError& error) {
    ranks_.not_launched(error.what());
    log_.write(log::Level::error, "not launched", {{"cause", error.what()}});
  }
}

// Records of the earlier orchestrator are ingested again, which changes nothing.
void Attempt::adopt() {
  workplace_.status.run_started(planned(), place_.attempt);
  log_.message(fmt::format("attempt {} is still running; resuming it", place_.attempt));
  auto ranks = workplace_.launcher.adopt(place_.directory);
  const auto marks = ranks->marks();
  ranks_.watch(std::move(ranks), true);
  log_.record("adopted", marks);
  log_launch("adopted", marks);
}

// Reports skipped checkpoints, because they may be the first sign of a failing disk.
void Attempt::report_start() {
  for (const std::string& problem : begins_.problems) {
    log_.record("message", {{"level", "warning"}, {"text", problem}});
    log_.message(problem);
    log_.write(log::Level::warning, "checkpoint skipped", {{"why", problem}});
  }
  if (begins_.at) {
    const auto& [attempt, epoch] = *begins_.at;
    log_.write(log::Level::info, "resumes", {{"after_epoch", epoch}, {"of_attempt", attempt}});
    log_.message(fmt::format("resumes after epoch {} of attempt {}", epoch, attempt));
  } else if (!begins_.problems.empty()) {
    log_.message("starts from the beginning");
  }
  if (!assignment_.membership) return;
  log_.message(assignment_.membership->cause);
  log_.write(log::Level::warning, "fewer replicas", {{"why", assignment_.membership->cause}});
}

void Attempt::log_launch(const char* event, const nlohmann::ordered_json& marks) const {
  const auto number = [](int core) { return std::to_string(core); };
  log_.write(log::Level::info, event,
             {{"ranks", place_.world_size},
              {"devices", joined(assignment_.devices, &Device::name, ",")},
              {"cores", joined(leased_cores(assignment_.devices), number, ",")},
              {"threads", planned().circumstances.threads_per_rank},
              {"pids", marks.value("pids", nlohmann::ordered_json::array()).dump()},
              {"retries_left", assignment_.retries_left},
              {"folder", place_.directory}});
}

bool Attempt::step() {
  if (ranks_.state().phase == AttemptState::Phase::over) return false;
  ranks_.note_ends();
  follow();
  ranks_.check_progress();
  ranks_.signal_ranks();
  const auto end = ranks_.end();
  if (end) finish(*end);
  return !end;
}

// Collects records and shows progress, at most as often as a person can see.
void Attempt::follow() {
  const auto now = Clock::now();
  if (now < next_follow_) return;
  ranks_.note_job();
  if (other_use_ && collector_.drained()) other_use_->before_collecting();
  collector_.collect();
  if (other_use_) other_use_->epoch_ended(collector_.epochs());
  next_follow_ = collector_.drained() ? now + follow_interval : now;
  note_over_limits();
  report_messages();
  shorten_logs();
  if (now < next_progress_) return;
  next_progress_ = now + progress_interval;
  // The last stage of the first replica: only the last stage computes the loss.
  const experiments::Strategy& strategy = planned().run.strategy;
  const auto rank = static_cast<int>((strategy.stages - 1) * strategy.tensor);
  const auto progress = experiments::read_progress(place_.directory / experiments::rank_progress_name(rank));
  workplace_.status.run_progress(planned(), progress.value_or(experiments::Progress{}));
}

void Attempt::report_messages() {
  for (const auto& text : collector_.take_messages()) {
    log_.message(text);
    log_.write(log::Level::warning, "message", {{"text", text}});
  }
}

void Attempt::note_over_limits() {
  for (const auto& over = collector_.over_limits(); noted_limits_ < over.size(); ++noted_limits_) {
    const OverLimit& each = over[noted_limits_];
    log_.record("over_limit", to_json(each));
    log_.write(log::Level::error, "over limit", {{"why", each.why}});
    ranks_.exceeded(each.why);
  }
}

// Ranks on other hosts have an agent that does this.
void Attempt::shorten_logs() {
  if (place_.shared) return;
  for (int rank = 0; rank < place_.world_size; ++rank) {
    if (!shorten_log(rank_log_of(place_, rank)) || !shortened_.insert(rank).second) continue;
    const std::string text = fmt::format(
        "the log of rank {} is larger than {} MiB: lines before its last {} MiB are removed, now and later",
        rank, largest_log >> 20, largest_log >> 20);
    log_.record("message", {{"level", "warning"}, {"text", text}});
    log_.message(text);
  }
}

void Attempt::finish(const RankGroupEnd& group) {
  ranks_.note_job();
  ranks_.release();
  end_leftovers(group.leftovers);
  record_other_use();  // before the records of the ranks: one transaction
  note_changed_file();
  collector_.collect_all();
  note_over_limits();
  report_times_problem();
  const AttemptEvidence seen = evidence(group);
  conclude(end_of(seen), seen.failures);
  shrink_retry(seen);
  collector_.collect();
  outcome_.seconds = log_.seconds();
  outcome_.test_accuracy = collector_.test_mean("correct");
  outcome_.test_loss = collector_.test_mean("loss");
  report_messages();
}

// A retry of an elastic run after a lost rank has one replica fewer.
void Attempt::shrink_retry(const AttemptEvidence& seen) {
  const Loss loss = loss_of(seen);
  if (loss.what.empty()) return;
  outcome_.membership = membership_of(planned().run.strategy, place_.world_size - 1,
                                      fmt::format("{} in attempt {}", loss.what, place_.attempt));
  if (loss.rank && std::cmp_less(*loss.rank, assignment_.devices.size()))
    outcome_.lost_device = assignment_.devices[static_cast<std::size_t>(*loss.rank)].name;
}

// `ended`: those that the launcher has ended already.
void Attempt::end_leftovers(int ended) {
  const int left = ended + end_children_with(token_);
  if (left == 0) return;
  log_.message(
      fmt::format("killed {} {} that its ranks left behind", left, left == 1 ? "process" : "processes"));
  log_.write(log::Level::warning, "orphaned processes killed", {{"processes", left}});
}

// Only what another try may change.
void Attempt::report_times_problem() const {
  if (!collector_.finished() || !assignment_.host_exclusive) return;
  for (const db::Attempt& each : db::attempts_of_run(workplace_.database, place_.key))
    if (each.attempt == place_.attempt && !each.times_problem.empty()) {
      log_.message("its times do not count: " + each.times_problem);
      log_.write(log::Level::warning, "times do not count", {{"why", each.times_problem}});
    }
}

// Call it after all processes of the attempt are reaped: only then is their own processor time known.
void Attempt::record_other_use() {
  if (other_use_)
    log_.record("processor_use", other_use_->record(planned().run.epochs, workplace_.options.others_limit));
}

// The event fails the attempt in the database too, even if all ranks have finished.
void Attempt::note_changed_file() {
  changed_ = experiments::changed_file(planned().run.strategy);
  if (changed_.empty()) return;
  log_.record("changed_file", {{"why", changed_}});
  log_.write(log::Level::error, "file changed", {{"why", changed_}});
}

AttemptEvidence Attempt::evidence(const RankGroupEnd& group) const {
  AttemptEvidence seen{.finished = collector_.finished(),
                       .group = group,
                       .stopped = ranks_.state().stopped,
                       .failures = ranks_.failures(),
                       .hang = ranks_.hang(),
                       .why_ended = ranks_.state().why,
                       .resumed_after = epochs_of(begins_.at)};
  if (const auto& over = collector_.over_limits(); !over.empty())
    seen.ruled_out = AttemptEnd{experiments::EndReason::failed, over.front().rank, over.front().why};
  else if (seen.finished && !changed_.empty())
    seen.ruled_out = AttemptEnd{experiments::EndReason::failed, {}, changed_};
  else if (seen.finished)
    seen.ruled_out = fault_of_records();
  if (!seen.finished && group.reason == experiments::EndReason::out_of_time && !seen.stopped)
    seen.resumable_after = epochs_of(resume_point().at);
  return seen;
}

// The first impossible record of an attempt whose ranks all reported that they finished.
std::optional<AttemptEnd> Attempt::fault_of_records() const {
  const auto fault = db::fault_at_close(workplace_.database, place_.key, place_.attempt);
  if (!fault) return std::nullopt;
  const auto folder = workplace_.yard.attempt(place_.key, fault->attempt);
  const std::string line = place_of_record(folder / experiments::rank_records_name(fault->rank), *fault);
  const auto left_out = fault->type == "end" ? collector_.left_out(fault->rank) : std::nullopt;
  return AttemptEnd{
      experiments::EndReason::failed, fault->rank,
      fmt::format("{}{} ({})", fault->error, left_out ? "; in its records " + *left_out : "", line)};
}

void Attempt::conclude(const AttemptEnd& end, const std::vector<RankFailure>& failures) {
  outcome_.reason = end.reason;
  outcome_.first_error = end.error;
  const double seconds = log_.seconds();
  if (end.reason == experiments::EndReason::finished) {
    log_.write(log::Level::info, "finished", {{"seconds", seconds}});
    return remove_checkpoints(workplace_.yard, planned().key);
  }
  nlohmann::ordered_json body{{"outcome", experiments::status_of(end.reason)}};
  if (end.rank) body["of_rank"] = *end.rank;
  body["error"] = end.error;
  if (end.rank) {
    outcome_.log = rank_log_of(place_, *end.rank).string();
    body["log"] = experiments::rank_log_name(*end.rank);
    for (const RankFailure& failure : failures)
      if (failure.rank != *end.rank)
        body["consequences"].push_back({{"of_rank", failure.rank}, {"error", failure.error}});
  }
  if (experiments::is_interruption(end.reason)) {
    log_.write(log::Level::warning, "interrupted", {{"seconds", seconds}, {"why", end.error}});
  } else {
    log::Fields said{{"seconds", seconds}, {"cause", end.error}};
    if (end.rank) said.insert(said.begin(), {"rank", *end.rank});
    if (end.rank) said.emplace_back("log", outcome_.log);
    log_.write(log::Level::error, "failed", said);
  }
  log_.record("cause", body);
  log_.sync();
}

}  // namespace trainyard::orchestrator
