
#include <doctest/doctest.h>

#include "experiments/protocol/launch.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

std::string line_with(const std::filesystem::path& file, const std::string& start) {
  const std::string text = "\n" + text_of(file);
  const auto begin = text.find("\n" + start);
  return begin == std::string::npos ? "" : text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
}

using Types = std::vector<std::string>;

}  // namespace

TEST_CASE("a sweep trains the planned runs and writes them to the database") {
  SweepFixture bench(
      {mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("ddp", 2, 0), mlp_run("ddp", 2, 1)});
  bench.journal();
  const auto result = bench.sweep();
  CHECK(result.finished == 4);
  CHECK(result.skipped == 0);
  CHECK(result.failures.empty());
  CHECK_FALSE(result.interrupted);
  for (const std::size_t event : {0U, 2U})  // the arms of the first pair
    CHECK(contains(bench.status.events[event], "seed 0 1"));
  CHECK(bench.status_of(3) == "finished");
  const auto metrics = db::final_metrics(bench.database, "bench");
  REQUIRE(metrics.size() == 4);
  for (const auto& row : metrics) {
    CHECK(row["test_accuracy"] == doctest::Approx(0.9));  // each rank: 9 of 10
    CHECK(row["test_loss"] == doctest::Approx(0.5));
    CHECK(row["epoch_train_seconds"] == doctest::Approx(0.0015));
    CHECK(row.times_count);
  }
  CHECK(*bench.status.outcomes["mlp ddp seed 1"].test_accuracy == doctest::Approx(0.9));
}

TEST_CASE("finished runs are skipped, and a plan has the time of runs of the same kind") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.journal();
  CHECK(bench.sweep().finished == 1);
  bench.experiment.runs.push_back(mlp_run("single", 1, 1));
  auto small = mlp_run("single", 1, 2);
  small.data.train_samples = 100;
  bench.experiment.runs.push_back(small);
  CHECK_FALSE(bench.plan().runs[2].expected_seconds.has_value());  // of another kind
  bench.experiment.runs.pop_back();
  const Plan plan = bench.plan();
  CHECK(plan.runs[0].state == PlanState::finished);
  CHECK(plan.runs[1].state == PlanState::to_run);
  CHECK(plan.runs[1].expected_seconds.has_value());
  const auto second = bench.sweep();
  CHECK(second.finished == 1);
  CHECK(second.skipped == 1);
}

TEST_CASE("a run that finished under other circumstances is run again") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.journal();
  CHECK(bench.sweep().finished == 1);
  auto elsewhere = machine_circumstances(bench.programs);
  elsewhere.processor = "another processor";
  const Plan plan = make_plan(bench.experiment, bench.devices, elsewhere, &bench.database);
  CHECK(plan.runs[0].state == PlanState::done_elsewhere);
  CHECK(plan.to_run() == 1);
}

TEST_CASE("ranks are launched with torchrun's environment, their cores and their run file") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  CHECK(bench.sweep().finished == 1);
  const auto folder = bench.attempt(0);
  const auto launch = experiments::read_launch(folder / "run.json");
  CHECK(launch.host_exclusive);
  CHECK(launch.records == folder);
  for (int rank = 0; rank < 2; ++rank) {
    const auto file = folder / ("surroundings-" + std::to_string(rank));
    const auto& cores = launch.cores.at(static_cast<std::size_t>(rank));
    CHECK(line_with(file, "RANK=") == "RANK=" + std::to_string(rank));
    CHECK(line_with(file, "LOCAL_RANK=") == "LOCAL_RANK=" + std::to_string(rank));
    CHECK(line_with(file, "WORLD_SIZE=") == "WORLD_SIZE=2");
    CHECK(line_with(file, "LOCAL_WORLD_SIZE=") == "LOCAL_WORLD_SIZE=2");
    CHECK(line_with(file, "MASTER_ADDR=") == "MASTER_ADDR=127.0.0.1");
    CHECK(line_with(file, "TRAINYARD_STORE=") == "TRAINYARD_STORE=" + (folder / "store").string());
    CHECK(line_with(file, "TORCHELASTIC_RUN_ID=") == "TORCHELASTIC_RUN_ID=" + bench.key(0) + "/1");
    CHECK(line_with(file, "TORCHELASTIC_USE_AGENT_STORE=") == "TORCHELASTIC_USE_AGENT_STORE=True");
    CHECK(line_with(file, "OMP_NUM_THREADS=") == "OMP_NUM_THREADS=" + std::to_string(cores.size()));
    CHECK(line_with(file, "TRAINYARD_RUN=") == "TRAINYARD_RUN=" + (folder / "run.json").string());
    std::string pinned;
    for (const int core : cores) pinned += std::to_string(core) + ",";
    CHECK(line_with(file, "cores=") == "cores=" + pinned);
  }
}

TEST_CASE("trainyard's own ranks meet in a file of the attempt, which is removed, and no store listens") {
  SweepFixture bench({mlp_run("ddp", 2, 0), mlp_run("single", 1, 0)});
  CHECK(bench.sweep().finished == 2);
  CHECK_FALSE(std::filesystem::exists(bench.folder.path / "stores"));
  CHECK_FALSE(std::filesystem::exists(bench.attempt(0) / "store"));
}

namespace {

experiments::Run foreign_run(std::int64_t replicas) {
  experiments::Run run = mlp_run("mine", replicas, 0);
  run.strategy.kind = "foreign";
  run.strategy.command = {FAKE_RANK};
  return run;
}

}  // namespace

TEST_CASE("a foreign program of several ranks has a store of its own, which ends with the run") {
  SweepFixture bench({foreign_run(2)});
  CHECK(bench.sweep().finished == 1);
  const auto surroundings = bench.attempt(0) / "surroundings-0";
  CHECK(line_with(surroundings, "MASTER_PORT=") == "MASTER_PORT=4711");
  CHECK(line_with(surroundings, "TRAINYARD_STORE=") == "TRAINYARD_STORE=");
  CHECK_FALSE(alive(pid_in(bench.folder.path / "stores")));
}

TEST_CASE("if the store does not start, the runs that need it fail with its log") {
  SweepFixture bench({foreign_run(2), mlp_run("single", 1, 0)});
  bench.programs.store = "/bin/false";
  const auto result = bench.sweep();
  CHECK(result.finished == 1);
  REQUIRE(result.failures.size() == 1);
  CHECK(contains(result.failures[0].first_error,
                 "trainyard-store ended before it printed an address (exit code 1)"));
  CHECK(contains(result.failures[0].first_error, "store.log"));
}

TEST_CASE("the orchestrator records the events of an attempt") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  CHECK(bench.sweep().finished == 1);
  CHECK(record_types(bench.attempt(0) / "orchestrator.records.jsonl") ==
        Types{"leased", "launched", "exited", "exited", "processor_use"});
}

TEST_CASE("a rank that fails ends its run with the error it recorded, and the sweep continues") {
  SweepFixture bench({mlp_run("ddp", 2, 0), mlp_run("single", 1, 1)});
  bench.on_message("1", "fail");
  const auto result = bench.sweep();
  CHECK(result.finished == 1);
  REQUIRE(result.failures.size() == 1);
  CHECK(result.failures[0].label == "mlp ddp seed 0");
  CHECK(result.failures[0].first_error == "the loss is not a number in epoch 1, step 12");
  CHECK(result.failures[0].log == (bench.attempt(0) / "rank-1.log").string());
  CHECK(bench.status_of(0) == "failed");
  const auto attempts = db::attempts_of_run(bench.database, bench.key(0));
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].cause == "the loss is not a number in epoch 1, step 12");
}

TEST_CASE("without an `end` record the error is the last one in the log, else the exit status of the rank") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  for (const auto& [message, error] :
       {std::pair("die", "RuntimeError: the cat sat on the keyboard"),
        std::pair("kill", "rank 0: killed by signal 9 (SIGKILL)"),
        std::pair("leave", "rank 0 ended without reporting that it finished")}) {
    bench.on_message("", message);
    CHECK(bench.only_failure().first_error == error);
  }
  CHECK(bench.status_of(0, 3) == "failed");  // a third attempt
}

TEST_CASE("peers of a dead rank are ended within five seconds, even if they ignore SIGTERM") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.options = SweepOptions{};
  bench.options.others_limit = 1000;
  CHECK(bench.options.peer_seconds + bench.options.grace_seconds < 5.0);
  bench.on_message("0", "deaf");
  bench.on_message("1", "kill once 0 hangs");
  CHECK(bench.only_failure().first_error == "rank 1: killed by signal 9 (SIGKILL)");
  CHECK_FALSE(alive(pid_in(bench.attempt(0) / "hanging-0")));
  CHECK(record_types(bench.attempt(0) / "orchestrator.records.jsonl") ==
        Types{"leased", "launched", "exited", "signalled", "signalled", "exited", "processor_use", "cause"});
}

TEST_CASE("the rank that failed first is the cause, and later failures are recorded as consequences") {
  SweepFixture bench({mlp_run("ddp", 3, 0)});
  bench.options.peer_seconds = tests::patience;  // both others have time to fail
  bench.on_message("0", "blame");
  bench.on_message("1", "die");
  bench.on_message("2", "blame");
  CHECK(bench.only_failure().first_error == "RuntimeError: the cat sat on the keyboard");
  const auto event = db::select(bench.database, "SELECT of_rank, extra FROM event WHERE type = 'cause'");
  REQUIRE(event.rows.size() == 1);
  CHECK(event.rows[0][0] == 1);
  const auto consequences = nlohmann::json::parse(event.rows[0][1].get<std::string>()).at("consequences");
  REQUIRE(consequences.size() == 2);
  for (const auto& each : consequences) CHECK(each.at("error") == "RuntimeError: Connection closed by peer");
}

TEST_CASE(
    "a rank that recorded a lost peer is never the cause, whatever its error and even if it ended first") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.options.peer_seconds = tests::patience;
  bench.on_message("0", "forsaken");
  bench.on_message("1", "die-late");
  const auto failure = bench.only_failure();
  CHECK(failure.first_error == "RuntimeError: the cat sat on the keyboard");
  CHECK(failure.log == (bench.attempt(0) / "rank-1.log").string());
}

TEST_CASE("a grandchild of a rank in its own session does not outlive the run") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.on_message("", "grandchild");
  CHECK(bench.sweep().finished == 1);
  const int grandchild = pid_in(bench.attempt(0) / "grandchild");
  REQUIRE(grandchild > 0);
  CHECK(becomes_true(tests::patience,
                     [&] { return !alive(grandchild); }));  // it was killed, but the kernel may need time
}

TEST_CASE("a damaged record is ignored with a message, and its run does not count as finished") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.on_message("", "garbage");
  const auto result = bench.sweep();
  CHECK(result.failures.size() == 1);
  CHECK(bench.status_of(0) == "failed");
  REQUIRE_FALSE(bench.status.messages.empty());
  CHECK(contains(bench.status.messages[0], "rank-0.records.jsonl: a line was left out: "));
}

TEST_CASE("a failed run is retried up to the limit, each time as a new attempt") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  bench.options.max_retries = 2;
  bench.options.backoff_seconds = 0.05;
  bench.on_message("", "second");  // the first attempt dies, the second finishes
  const auto result = bench.sweep();
  CHECK(result.finished == 2);
  CHECK(result.failures.empty());
  for (std::size_t run = 0; run < 2; ++run) {
    CHECK(bench.status_of(run, 1) == "failed");
    CHECK(bench.status_of(run, 2) == "finished");
  }
  bench.on_message("", "die");
  bench.experiment.runs = {mlp_run("single", 1, 2)};
  CHECK(bench.sweep().failures.size() == 1);
  CHECK(bench.status_of(0, 3) == "failed");
  CHECK(bench.status_of(0, 4) == "unknown");
}

TEST_CASE("each retry waits twice as long as the one before it") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.options.max_retries = 2;
  bench.options.backoff_seconds = 0.2;
  bench.on_message("", "die");
  std::vector<double> waits;
  bench.status.on_end = [&](const RunOutcome& outcome) {
    waits.push_back(outcome.retry_seconds.value_or(0));
  };
  CHECK(seconds_of([&] { bench.sweep(); }) > 0.6);  // 0.2 + 0.4
  CHECK(waits == std::vector<double>{0.2, 0.4, 0});
}

TEST_CASE("after max_failures failed runs no other run is started") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("single", 1, 2),
                      mlp_run("single", 1, 3), mlp_run("single", 1, 4)});
  bench.options.max_failures = 2;
  bench.on_message("", "die");
  const auto result = bench.sweep();
  CHECK(result.failures.size() == 2);
  CHECK(result.not_started == 3);
  CHECK_FALSE(result.interrupted);
}

TEST_CASE("with fail_fast the first failure ends all other runs") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("single", 1, 2)});
  if (!have_two_cores()) return;
  bench.experiment.machine.exclusive_host = false;
  bench.options.fail_fast = true;
  bench.on_message("", "seed-0-dies");  // the others hang
  const auto result = bench.sweep();
  CHECK(result.failures.size() == 1);
  CHECK(result.not_started == 2);
  CHECK(bench.status_of(1) == "interrupted");
  CHECK(bench.status_of(2) == "unknown");
}

TEST_CASE("runs share free devices if the file allows it, and their times do not count") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  if (!have_two_cores()) return;
  bench.experiment.machine.exclusive_host = false;
  bench.on_message("", "slow");
  bench.journal();
  CHECK(bench.sweep().finished == 2);
  CHECK(bench.status.events[0] == "start mlp single seed 0 1");
  CHECK(bench.status.events[1] == "start mlp single seed 1 1");
  const auto first = experiments::read_launch(bench.attempt(0) / "run.json");
  const auto second = experiments::read_launch(bench.attempt(1) / "run.json");
  CHECK(first.devices != second.devices);
  CHECK_FALSE(first.host_exclusive);
  for (const auto& row : db::final_metrics(bench.database, "bench")) CHECK_FALSE(row.times_count);
}

TEST_CASE("runs whose times are not needed train side by side, after those that are timed") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1), mlp_run("single", 1, 2)});
  if (!have_two_cores()) return;
  bench.options.needed = [&](const db::Database&) {
    Needed needed;
    needed.untimed = {bench.key(0), bench.key(2)};
    return needed;
  };
  bench.on_message("", "slow");
  bench.journal();
  CHECK(bench.sweep().finished == 3);
  const std::vector<std::string> first_four(bench.status.events.begin(), bench.status.events.begin() + 4);
  CHECK(first_four == std::vector<std::string>{"start mlp single seed 1 1", "end mlp single seed 1",
                                               "start mlp single seed 0 1", "start mlp single seed 2 1"});
  const auto launch = [&](std::size_t run) {
    return experiments::read_launch(bench.attempt(run) / "run.json");
  };
  CHECK(launch(0).devices != launch(2).devices);
  CHECK_FALSE(launch(0).host_exclusive);
  CHECK_FALSE(launch(0).times_needed);
  CHECK(launch(1).times_needed);
  for (const auto& row : db::final_metrics(bench.database, "bench"))
    CHECK(row.times_problem == (row.seed == 1 ? "" : db::times_not_needed));
  Plan again = bench.plan();
  CHECK(again.runs[2].times_problem == db::times_not_needed);
  Needed needed;
  needed.lack_times = {bench.key(0)};
  leave_out_unneeded(again, needed);
  CHECK(again.runs[0].times_problem == db::times_not_needed);
  CHECK(again.runs[2].times_problem.empty());  // nothing to train again
}

TEST_CASE("runs with different numbers of threads start as their cores become free") {
  auto wide = mlp_run("single", 1, 0), one = mlp_run("single", 1, 1), other = mlp_run("single", 1, 2);
  wide.threads = 2;
  one.threads = other.threads = 1;
  SweepFixture bench({wide, one, other});
  if (!have_two_cores()) return;
  bench.devices.resize(2);
  bench.experiment.machine.exclusive_host = false;
  bench.on_message("", "slow");
  CHECK(bench.sweep().finished == 3);
  const std::vector<std::string> first_four(bench.status.events.begin(), bench.status.events.begin() + 4);
  CHECK(first_four == std::vector<std::string>{"start mlp single seed 0 1", "end mlp single seed 0",
                                               "start mlp single seed 1 1", "start mlp single seed 2 1"});
  const auto device = [&](std::size_t run) {
    return experiments::read_launch(bench.attempt(run) / "run.json").devices.at(0);
  };
  CHECK(device(1) == bench.devices[0].name);
  CHECK(device(2) == bench.devices[1].name);
}

TEST_CASE("a rank is pinned to one core per thread") {
  auto one = mlp_run("single", 1, 0), two = mlp_run("single", 1, 1);
  one.threads = 1;
  two.threads = 2;
  SweepFixture bench({one, two});
  if (!have_two_cores()) return;
  CHECK(bench.sweep().finished == 2);
  for (const std::size_t run : {0U, 1U}) {
    const auto launch = experiments::read_launch(bench.attempt(run) / "run.json");
    CHECK(launch.cores.at(0).size() == run + 1);
    CHECK_FALSE(launch.devices_shared);
    std::string pinned;
    for (const int core : launch.cores[0]) pinned += std::to_string(core) + ",";
    CHECK(line_with(bench.attempt(run) / "surroundings-0", "cores=") == "cores=" + pinned);
  }
}
