#include "orchestrator/sweep/recovery.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/database/database.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "experiments/protocol/launch.h"
#include "experiments/protocol/record.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/sweep/collector.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

// Runs the sweep in a child process and kills it as soon as all `ranks` of the first run hang.
void sweep_and_kill(SweepFixture& bench, int ranks) {
  const pid_t orchestrator = ::fork();
  if (orchestrator == 0) {
    auto own = db::Database::open_for_writing(bench.yard.database());
    RememberingStatus status;
    const auto launcher = local_launcher(bench.programs);
    run_sweep(bench.experiment, bench.plan(), bench.yard, own, bench.programs, *launcher, status, bench.stop,
              bench.options);
    ::_exit(0);
  }
  CHECK(becomes_true(tests::patience, [&] {
    for (int rank = 0; rank < ranks; ++rank)
      if (pid_in(bench.attempt(0) / ("hanging-" + std::to_string(rank))) == 0) return false;
    return true;
  }));
  ::kill(orchestrator, SIGKILL);
  ::waitpid(orchestrator, nullptr, 0);
}

constexpr const char* token = "0123456789abcdef0123456789abcdef";

// An attempt as a killed orchestrator leaves it.
experiments::Launch abandoned_attempt(const SweepFixture& bench, const std::string& boot = boot_id(),
                                      std::uint64_t since = 0) {
  experiments::Launch launch;
  launch.key = bench.key(0);
  launch.records = bench.attempt(0);
  launch.experiment = bench.experiment.name;
  launch.run = bench.experiment.runs[0];
  launch.devices = {"cpu:0"};
  launch.cores = {{0}};
  launch.created = experiments::utc_now();
  std::filesystem::create_directories(launch.records);
  experiments::write_launch(launch);
  experiments::RecordWriter records(launch.records / experiments::orchestrator_records_name, launch.key, 1,
                                    std::nullopt);
  records.append("leased",
                 {{"devices", launch.devices}, {"token", token}, {"boot_id", boot}, {"since_ticks", since}});
  records.append("launched", {{"pids", {1}}});
  return launch;
}

// A sleeping child process with these values in its environment.
class Stranger {
 public:
  Stranger(const std::string& run_file, const char* its_token, uid_t user = ::getuid()) : pid_(::fork()) {
    if (pid_ != 0) {
      // /proc has the new environment only after exec, and none during exec.
      REQUIRE(becomes_true(tests::patience, [&] {
        const std::string process = "/proc/" + std::to_string(pid_);
        return text_of(process + "/comm") == "sleep\n" &&
               contains(text_of(process + "/environ"), "TRAINYARD_RUN=" + run_file);
      }));
      return;
    }
    ::setsid();
    ::setenv("TRAINYARD_RUN", run_file.c_str(), 1);
    if (its_token != nullptr) ::setenv(token_variable, its_token, 1);
    if (user != ::getuid() && ::setuid(user) != 0) ::_exit(1);
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  int pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("ranks of a killed orchestrator end, and the same command finishes the sweep") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.journal();
  bench.on_message("", "deaf");
  sweep_and_kill(bench, 2);
  const int first = pid_in(bench.attempt(0) / "hanging-0");
  const int second = pid_in(bench.attempt(0) / "hanging-1");
  const int store = pid_in(bench.folder.path / "stores");
  CHECK(becomes_true(tests::patience, [&] { return !alive(first) && !alive(second) && !alive(store); }));

  bench.on_message("", "finish");
  const auto result = bench.sweep();
  CHECK(result.finished == 1);
  CHECK(bench.status_of(0, 1) == "interrupted");
  CHECK(bench.status_of(0, 2) == "finished");
  REQUIRE_FALSE(bench.status.messages.empty());
  CHECK(bench.status.messages[0].find("mlp ddp seed 0: attempt 1 was interrupted") == 0);
}

TEST_CASE("recovery ends only processes with the token, the user and a start time of the attempt") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const std::string run_file = (bench.attempt(0) / "run.json").string();
  const Stranger older(run_file, token);  // before the launch
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const std::uint64_t launch = ticks_now();
  const Stranger rank(run_file, token);
  const Stranger grandchild(run_file, token);  // never recorded, but it inherited the token
  const Stranger by_hand(run_file, nullptr);   // a user repeats the rank by hand
  abandoned_attempt(bench, boot_id(), launch);
  CHECK(bench.sweep().finished == 1);
  CHECK_FALSE(alive(rank.pid()));
  CHECK_FALSE(alive(grandchild.pid()));
  for (const Stranger* kept : {&older, &by_hand}) CHECK(alive(kept->pid()));
  CHECK(bench.status_of(0, 1) == "interrupted");
  REQUIRE(bench.status.messages.size() == 1);
  CHECK(contains(bench.status.messages[0], "; killed 2 of its processes that were still running"));
}

TEST_CASE("a process of another user is left alone, even if it has the token") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  if (::getuid() != 0) {
    MESSAGE("only as root");
    return;
  }
  const Stranger other("", token, 65534);
  abandoned_attempt(bench);
  CHECK(bench.sweep().finished == 1);
  CHECK(alive(other.pid()));
}

TEST_CASE("a token from before a reboot matches no process") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const Stranger stranger("", token);
  abandoned_attempt(bench, "00000000-0000-0000-0000-000000000000");
  CHECK(bench.sweep().finished == 1);
  CHECK(alive(stranger.pid()));
}

TEST_CASE("a run file of another run, and a link in the yard, are not touched") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  bench.journal();
  const auto launch = abandoned_attempt(bench);
  std::filesystem::create_directories(bench.yard.run("aaaaaaaaaaaa"));
  std::filesystem::rename(launch.records,
                          bench.yard.attempt("aaaaaaaaaaaa", 1));  // the run file is of another run
  const auto outside = bench.folder.path / "outside";
  std::filesystem::create_directories(outside / "attempt-1");
  std::ofstream(outside / "attempt-1" / "run.json") << "{}";
  std::filesystem::create_directory_symlink(outside, bench.yard.run("bbbbbbbbbbbb"));
  CHECK(bench.sweep().finished == 2);
  REQUIRE(bench.status.messages.size() == 1);
  CHECK(bench.status.messages[0].find("its run file belongs to another run or attempt") != std::string::npos);
  CHECK(bench.status_of(0) == "finished");
  CHECK(record_types(bench.yard.attempt("aaaaaaaaaaaa", 1) / "orchestrator.records.jsonl").size() == 2);
}

TEST_CASE("a damaged orchestrator log is saved as a copy, truncated before the damage, and continued") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const auto launch = abandoned_attempt(bench);
  const auto spool = launch.records / "orchestrator.records.jsonl";
  std::string text = text_of(spool);
  text[text.find("pids")] ^= 1;
  std::ofstream(spool) << text;
  CHECK(bench.sweep().finished == 1);
  CHECK(record_types(spool) == std::vector<std::string>{"leased", "cause"});
  CHECK(text_of(launch.records / "orchestrator.records.jsonl.damaged") == text);
  CHECK(bench.status_of(0, 1) == "interrupted");
}

namespace {

// The attempt of a killed orchestrator, with all its records in the database too.
experiments::Launch ingested_attempt(SweepFixture& bench) {
  const auto launch = abandoned_attempt(bench);
  db::Ingest ingest(bench.database);
  Collector({launch.records, launch.key, 1, 1}, experiments::to_json(launch), ingest).collect();
  return launch;
}

std::int64_t first_number(const std::filesystem::path& spool) {
  const std::string text = text_of(spool);
  return experiments::parse_line(text.substr(0, text.find('\n'))).record.value().seq;
}

}  // namespace

TEST_CASE("if a power cut emptied the orchestrator's log, its numbers continue after those of the database") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const auto spool = ingested_attempt(bench).records / "orchestrator.records.jsonl";
  std::filesystem::resize_file(spool, 0);
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 1) == "interrupted");
  CHECK(record_types(spool) == std::vector<std::string>{"cause"});
  CHECK(first_number(spool) == 2);
}

TEST_CASE(
    "other records with the numbers of the database are a reported conflict, and the attempt is closed") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const auto launch = ingested_attempt(bench);
  const auto spool = launch.records / "orchestrator.records.jsonl";
  std::filesystem::resize_file(spool, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the time tells two records apart
  experiments::RecordWriter(spool, launch.key, 1, std::nullopt).append("cause", {{"outcome", "interrupted"}});
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 1) == "interrupted");
  REQUIRE_FALSE(bench.status.messages.empty());
  CHECK_MESSAGE(
      contains(bench.status.messages[0], "the database has another record with the number 0, and keeps it"),
      bench.status.messages[0]);
}

TEST_CASE("zeros that a power cut left at the end of a record file are cut, and a copy is kept") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const auto launch = abandoned_attempt(bench);
  const auto rank = launch.records / "rank-0.records.jsonl",
             own = launch.records / "orchestrator.records.jsonl";
  experiments::RecordWriter(rank, launch.key, 1, 0).append("start");
  const std::string sound = text_of(rank);
  for (const auto& file : {rank, own})
    std::ofstream(file, std::ios::app) << "{\"v\"" << std::string(4000, '\0');
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 1) == "interrupted");
  CHECK(text_of(rank) == sound);
  CHECK(std::filesystem::file_size(launch.records / "rank-0.records.jsonl.damaged") == sound.size() + 4004);
  CHECK(record_types(own) == std::vector<std::string>{"leased", "launched", "cause"});
  CHECK(db::check_files(bench.yard.root(), &bench.database).unreadable.empty());
}

namespace {

// Lets a rank finish the abandoned attempt.
void finish_by_hand(const experiments::Launch& launch) {
  ::setenv("TRAINYARD_RUN", (launch.records / "run.json").c_str(), 1);
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "1", 1);
  REQUIRE(std::system(FAKE_RANK) == 0);
  for (const char* name : {"TRAINYARD_RUN", "RANK", "WORLD_SIZE"}) ::unsetenv(name);
}

void append_late_record(const experiments::Launch& launch) {
  experiments::RecordWriter(launch.records / "rank-0.records.jsonl", launch.key, 1, 0)
      .append("message", {{"level", "info"}, {"text", "late"}});
}

std::string status_after_replay(const SweepFixture& bench) {
  auto again = db::Database::open_for_writing(bench.folder.path / "again.db");
  db::replay(bench.yard.root(), again);
  return db::attempts_of_run(again, bench.key(0)).at(0).status;
}

}  // namespace

TEST_CASE(
    "an attempt is finished if all its ranks finished after their orchestrator was killed; records that are "
    "appended later change nothing, and records that were there before fail it") {
  for (const bool before : {true, false}) {
    SweepFixture bench({mlp_run("single", 1, 0)});
    bench.journal();
    const auto launch = abandoned_attempt(bench);
    finish_by_hand(launch);
    if (before) append_late_record(launch);
    bench.sweep();
    CHECK(bench.status_of(0, 1) == (before ? "failed" : "finished"));
    if (!before) {
      CHECK(record_types(launch.records / "orchestrator.records.jsonl") ==
            std::vector<std::string>{"leased", "launched"});
      append_late_record(launch);
    }
    CHECK(status_after_replay(bench) == (before ? "failed" : "finished"));
    if (before) CHECK(contains(bench.status.messages.at(0), "the rank has recorded its end already"));
  }
}

TEST_CASE("recovery in a copy of a yard ends no process of the original") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  const Stranger rank((bench.attempt(0) / "run.json").string(), token);
  const auto launch = abandoned_attempt(bench);
  const Yard copy(bench.folder.path / "copy");
  std::filesystem::copy(bench.yard.root(), copy.root(), std::filesystem::copy_options::recursive);
  std::vector<std::string> messages;
  const auto recover_in = [&](const Yard& yard) {
    auto database = db::Database::open_for_writing(yard.database());
    recover(yard, database, [&](const std::string& text) { messages.push_back(text); });
  };
  recover_in(copy);
  CHECK(alive(rank.pid()));
  REQUIRE(messages.size() == 2);
  CHECK(messages[0] == copy.attempt(launch.key, 1).string() + ": is a copy of " + launch.records.string() +
                           ", so processes of that attempt were left alone");
  const Yard renamed(bench.folder.path / "renamed");
  std::filesystem::rename(bench.yard.root(), renamed.root());
  recover_in(renamed);  // the same folder at another path
  CHECK_FALSE(alive(rank.pid()));
}

TEST_CASE("an incomplete record of a killed rank is not ingested, but the records before it are") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.journal();
  bench.on_message("1", "torn");
  bench.on_message("0", "hang");
  sweep_and_kill(bench, 2);
  bench.on_message("", "finish");
  bench.on_message("0", "finish");
  bench.on_message("1", "finish");
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 1) == "interrupted");
  CHECK(bench.status.messages.size() == 1);  // the interruption, and no damaged line

  auto again = db::Database::open_for_writing(bench.folder.path / "again.db");
  const auto replay = db::replay(bench.yard.root(), again);
  CHECK(replay.damaged_lines == 0);
  const auto before = db::attempts_of_run(bench.database, bench.key(0));
  const auto after = db::attempts_of_run(again, bench.key(0));
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i].status == before[i].status);
}

TEST_CASE("if the folder of a run was removed, its next attempt has a new number") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.on_message("", "die");
  CHECK(bench.sweep().failures.size() == 1);
  std::filesystem::remove_all(bench.yard.runs());
  bench.on_message("", "finish");
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.status_of(0, 1) == "failed");
  CHECK(bench.status_of(0, 2) == "finished");
}
