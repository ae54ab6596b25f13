#include "tests/orchestrator/support/sweep_fixture.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/host.h"
#include "db/ingest/ingest.h"
#include "experiments/protocol/record.h"
#include "models/catalogue.h"
#include "orchestrator/sweep/recovery.h"
#include "orchestrator/yard/journal.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

fs::path fake_store(const fs::path& folder) {
  const fs::path file = folder / "fake-store";
  std::ofstream(file) << "#!/bin/sh\necho $$ >> '" << folder.string()
                      << "/stores'\necho 127.0.0.1 4711\nexec sleep 1000\n";
  fs::permissions(file, fs::perms::owner_all);
  return file;
}

}  // namespace

void RememberingStatus::run_started(const PlannedRun& run, int attempt) {
  events.push_back("start " + experiments::label(run.run) + " " + std::to_string(attempt));
}

void RememberingStatus::run_progress(const PlannedRun&, const experiments::Progress& now) {
  progress.push_back(now);
  if (on_progress) on_progress();
}

void RememberingStatus::run_ended(const PlannedRun& run, const RunOutcome& outcome) {
  events.push_back("end " + experiments::label(run.run));
  outcomes[experiments::label(run.run)] = outcome;
  if (on_end) on_end(outcome);
}

experiments::Run mlp_run(const std::string& strategy, std::int64_t replicas, std::uint64_t seed) {
  experiments::Run run;
  run.model = "mlp";
  for (const auto& parameter : models::find_model("mlp").hyperparameters)
    if (parameter.fallback) run.hyperparameters[parameter.name] = *parameter.fallback;
  run.data.dataset = run.data.source = "synthetic-digits";
  run.data.fingerprint = std::string(64, 'a');
  run.strategy = {.name = strategy, .kind = strategy, .replicas = replicas, .stages = 1};
  run.epochs = 2;
  run.seed = seed;
  run.axes = {{"model", run.model}, {"strategy", strategy}, {"seed", static_cast<std::int64_t>(seed)}};
  return run;
}

experiments::Run mesh_run(std::uint64_t seed) {
  experiments::Run run = mlp_run("mp-ddp", 2, seed);
  run.strategy.stages = 2;
  run.strategy.schedule = "1f1b";
  run.strategy.micro_batches = 4;
  run.strategy.boundaries = {2};
  return run;
}

SweepFixture::SweepFixture(std::vector<experiments::Run> runs)
    : yard(folder.path / "yard"),
      database([this] {
        fs::create_directories(yard.root());
        return db::Database::open_for_writing(yard.database());
      }()),
      devices(core_devices(usable_cores())),
      programs{FAKE_RANK, fake_store(folder.path)} {
  experiment.name = "bench";
  experiment.file = "bench.toml";
  experiment.compare = {experiments::Compare{}};
  experiment.varied = {"model", "strategy", "seed"};
  experiment.runs = std::move(runs);
  options = {.grace_seconds = 0.5, .peer_seconds = 0.3, .others_limit = 1000};
}

SweepFixture::~SweepFixture() {
  for (const auto& name : variables_) ::unsetenv(name.c_str());
}

void SweepFixture::on_message(const std::string& rank, const std::string& what) {
  variables_.push_back(rank.empty() ? "FAKE_RANK" : "FAKE_RANK_" + rank);
  ::setenv(variables_.back().c_str(), what.c_str(), 1);
}

experiments::Circumstances machine_circumstances(const Programs& programs) {
  return runner_facts(programs).circumstances;
}

Plan SweepFixture::plan() const {
  return make_plan(experiment, devices, machine_circumstances(programs), &database);
}

SweepResult SweepFixture::sweep() {
  const auto launcher = local_launcher(programs);
  recover(yard, database, [&](const std::string& text) { status.message(text); });
  return run_sweep(experiment, plan(), yard, database, programs, *launcher, status, stop, options);
}

Failure SweepFixture::only_failure() {
  const auto failures = sweep().failures;
  REQUIRE(failures.size() == 1);
  return failures[0];
}

void SweepFixture::journal() {
  const auto entry = run_entry(experiment);
  append_to_journal(yard.journal(), entry);
  db::Ingest(database).journal_entry(entry);
}

std::string SweepFixture::key(std::size_t run) const {
  return experiments::run_key(experiment.runs.at(run));
}

fs::path SweepFixture::attempt(std::size_t run, int number) const {
  return yard.attempt(key(run), number);
}

std::string SweepFixture::status_of(std::size_t run, int number) const {
  for (const auto& attempt : db::attempts_of_run(database, key(run)))
    if (attempt.attempt == number) return attempt.status;
  return "unknown";
}

std::string text_of(const fs::path& file) {
  return tests::read_text(file);
}

bool have_two_cores() {
  const bool found = usable_cores().size() >= 2;
  if (!found) MESSAGE("skipped: it needs two cores");
  return found;
}

bool alive(int pid) {
  return facts_of(pid).has_value();
}

int pid_in(const fs::path& file) {
  const std::string text = text_of(file);
  return text.empty() ? 0 : std::stoi(text);
}

bool becomes_true(double seconds, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> record_types(const fs::path& spool) {
  std::vector<std::string> types;
  std::istringstream lines(text_of(spool));
  for (std::string line; std::getline(lines, line);)
    if (const auto parsed = experiments::parse_line(line); parsed.record)
      types.push_back(parsed.record->type);
  return types;
}

}  // namespace trainyard::orchestrator
