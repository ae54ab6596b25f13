// What /proc says: the time that other processes used of a run's cores, and how often the kernel killed a process because
// memory ran out.
#include "orchestrator/resources/processor_use.h"

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/host.h"
#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("/proc/stat is read by CPU: user, nice, system and interrupts are busy, and steal is stolen") {
  // cpu user nice system idle iowait irq softirq steal guest guest_nice, in ticks of 10 ms
  const auto host = parse_proc_stat(
      "cpu  700 0 0 0 0 0 0 0 0 0\ncpu0 100 20 30 4000 500 6 7 80 90 9\ncpu12 1 0 0 0 0 0 0 0 0 0\n"
      "intr 5 0\ncpux 9\n",
      100);
  REQUIRE(host.size() == 2);
  CHECK(host.at(0).busy == doctest::Approx(1.63));
  CHECK(host.at(0).stolen == doctest::Approx(0.8));
  CHECK(host.at(12).busy == doctest::Approx(0.01));
  CHECK(parse_proc_stat("", 100).empty());
}

namespace {

ProcessorTimes at(double seconds, const HostSeconds& host, double own) {
  return {seconds, host, own};
}

}  // namespace

TEST_CASE("the use of others is the time of the leased cores without our own, as a share of these cores") {
  // Ten seconds on two of four CPUs: 16 s were busy (14 s by us) and 1 s was stolen. CPU 3 was busy for 5 s.
  const auto before = at(100, {{0, {5, 0}}, {1, {5, 0}}, {2, {0, 0}}, {3, {0, 0}}}, 20);
  const auto after = at(110, {{0, {13, 1}}, {1, {13, 0}}, {2, {0, 0}}, {3, {5, 0}}}, 34);
  const auto use = other_use(before, after, {0, 1}, {0, 1}).value();
  CHECK(use.seconds == 10);
  CHECK(use.other_seconds == doctest::Approx(3));
  CHECK(use.stolen_seconds == doctest::Approx(1));
  CHECK(use.share == doctest::Approx(0.15));      // 3 s of 2 x 10 s
  CHECK(use.host_share == doctest::Approx(0.2));  // 16 + 5 + 1 - 14 = 8 s of 4 x 10 s
  // CPU 3 is the other hyper-thread of core 1.
  CHECK(other_use(before, after, {0, 1}, {0, 1, 3})->share == doctest::Approx(0.4));
}

TEST_CASE("the use of others is unknown if the kernel does not count, and it is never negative") {
  const auto before = at(0, {{0, {0, 0}}}, 0);
  CHECK_FALSE(other_use(before, at(10, {{0, {0, 0}}}, 9), {0}, {0}));  // a sandbox may have only zeros
  CHECK_FALSE(other_use(before, at(10, {}, 9), {0}, {0}));
  CHECK_FALSE(other_use(before, before, {0}, {0}));
  CHECK(other_use(before, at(10, {{0, {8.9, 0}}}, 9), {0}, {0})->other_seconds == 0);  // ticks are coarse
}

TEST_CASE("the limit is a constant, an environment variable replaces it, and a wrong value is refused") {
  const char* before = std::getenv(others_limit_variable);
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv(others_limit_variable);
  CHECK(others_limit_here() == others_limit);
  ::setenv(others_limit_variable, "0.5", 1);
  CHECK(others_limit_here() == 0.5);
  for (const char* wrong : {"much", "-1", "nan", "0.5x"}) {
    ::setenv(others_limit_variable, wrong, 1);
    CHECK_THROWS_AS(others_limit_here(), UserError);
  }
  ::unsetenv(others_limit_variable);
  if (before != nullptr) ::setenv(others_limit_variable, kept.c_str(), 1);
}

namespace {

// A child of this process that uses 0.3 s of processor time on one core and then waits. If `adopted`, it is a
// grandchild whose parent has ended, so that it is not a descendant. If `goes_on`, it uses the core until it is killed.
pid_t busy_process(int core, bool adopted, bool goes_on = false) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (adopted && ::fork() != 0) ::_exit(0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    while (std::clock() < 3 * CLOCKS_PER_SEC / 10) {  // processor time, even on a busy machine
    }
    const pid_t self = ::getpid();
    if (::write(pipe[1], &self, sizeof self) != sizeof self) ::_exit(1);
    while (goes_on) std::clock();
    ::pause();
  }
  pid_t busy = 0;
  REQUIRE(::read(pipe[0], &busy, sizeof busy) == sizeof busy);
  for (const int end : pipe) ::close(end);
  if (adopted) ::waitpid(child, nullptr, 0);
  return busy;
}

}  // namespace

TEST_CASE("a process that uses a leased core is found, and that of a live or reaped child is our own") {
  if (processor_times().host.empty()) {
    MESSAGE("skipped: this kernel does not count the processor time of the host");
    return;
  }
  const int core = usable_cores().front();
  const auto before = processor_times();
  const pid_t other = busy_process(core, true);
  const auto burned = processor_times();
  CHECK(other_use(before, burned, {core}, {core})->other_seconds > 0.2);
  CHECK(burned.own - before.own < 0.2);
  const pid_t child = busy_process(core, false);
  const auto live = processor_times();
  CHECK(live.own - burned.own > 0.25);
  ::kill(other, SIGKILL);
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  const double zombie = processor_times().own;
  CHECK(std::abs(zombie - live.own) < 0.1);
  ::waitpid(child, nullptr, 0);
  CHECK(std::abs(processor_times().own - zombie) < 0.1);
}

TEST_CASE("what other processes take is measured for epochs, and short epochs are measured together") {
  EpochUse use({usable_cores().front()});
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1010)); };
  use.epoch_ended(0);
  use.epoch_ended(1);
  wait();
  use.epoch_ended(1);  // it had ended long before
  use.epoch_ended(2);
  wait();
  use.epoch_ended(3);
  use.epoch_ended(4);
  const auto body = use.record(5, 0.02);  // less than a second after epoch 3
  if (!body.contains("epochs")) {
    MESSAGE("skipped: this kernel does not count the processor time of the host");
    return;
  }
  REQUIRE(body.at("epochs").size() == 2);
  CHECK(body.at("epochs").at(0).at(0) == 2);
  CHECK(body.at("epochs").at(1).at(0) == 5);
  for (const auto& measured : body.at("epochs")) CHECK(measured.at(1) >= 1.01);
  CHECK(body.at("seconds") >= 2.02);
}

TEST_CASE("what others take while the records of an epoch arrive belongs to both epochs") {
  const int core = usable_cores().front();
  EpochUse use({core});
  use.before_collecting();
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  use.before_collecting();  // finds nothing, and epoch 1 ends after it
  const pid_t other = busy_process(core, true);
  use.before_collecting();
  use.epoch_ended(1);
  ::kill(other, SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  const auto body = use.record(2, 0.02);
  if (!body.contains("epochs")) {
    MESSAGE("skipped: this kernel does not count the processor time of the host");
    return;
  }
  REQUIRE(body.at("epochs").size() == 2);
  for (const auto& measured : body.at("epochs")) CHECK(measured.at(2) >= 0.2);
}

// A rank that starts after the measurement has begun was once taken for another process at the begin of epoch 2. Other
// programs may really take the core, so only a try without them counts.
TEST_CASE("a rank that works while the records of the first epoch arrive is our own in the second one") {
  const int core = usable_cores().front();
  for (int tries = 0; tries < 5; ++tries) {
    EpochUse use({core});
    const pid_t rank = busy_process(core, false, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(810));
    for (int collected = 0; collected < 3; ++collected) {
      use.before_collecting();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    use.epoch_ended(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1010));
    ::kill(rank, SIGKILL);
    ::waitpid(rank, nullptr, 0);
    const auto body = use.record(2, 0.02);
    if (!body.contains("epochs") || body.at("other_seconds") > 0.1) continue;
    REQUIRE(body.at("epochs").size() == 2);
    CHECK(body.at("epochs").at(1).at(2) < 0.2);  // 0.4 s if the rank is not subtracted
    return;
  }
  MESSAGE("only on a core that other programs leave alone");
}

TEST_CASE("the use of others is recorded for a run that had the host, and not for one that shared it") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.journal();
  bench.options.others_limit = -1;  // any use is too much
  bench.on_message("", "slow");
  CHECK(bench.sweep().finished == 1);
  const auto events =
      db::select(bench.database, "SELECT why, extra FROM event WHERE type = 'processor_use'").rows;
  REQUIRE(events.size() == 1);
  const auto extra = nlohmann::json::parse(events[0][1].get<std::string>());
  CHECK(extra.at("cores") == experiments::read_launch(bench.attempt(0) / "run.json").cores.at(0).size());
  CHECK(extra.at("limit") == -1);
  CHECK(extra.at("epochs").back().at(0) == 2);
  bench.experiment.machine.exclusive_host = false;  // its times do not count anyway
  bench.experiment.runs = {mlp_run("single", 1, 1)};
  CHECK(bench.sweep().finished == 1);
  CHECK(db::select(bench.database, "SELECT 1 FROM event WHERE type = 'processor_use'").rows.size() == 1);
}

TEST_CASE("the number of kills is in the text of /proc/vmstat if the kernel counts them") {
  CHECK(parse_memory_kills("pgmajfault 12\noom_kill 5\nnuma_hit 7\n") == 5);
  CHECK_FALSE(parse_memory_kills("pgmajfault 12\n"));
  CHECK_FALSE(parse_memory_kills(""));
}
