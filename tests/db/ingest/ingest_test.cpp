// How each record is stored, and that it is stored once.
#include "db/ingest/ingest.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "db/queries/queries.h"
#include "tests/db/support/yard.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

// A database with one planned and launched run on two ranks.
struct Launched {
  TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Ingest ingest{database};
  experiments::Run run = make_run("mlp", 2, 0);
  std::string key = experiments::run_key(run);

  Launched() {
    ingest.journal_entry(run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z"));
    ingest.run_file(experiments::to_json(make_launch(run)));
  }
  std::vector<std::string> rows(const std::string& sql) const { return rows_of(database, sql); }
  std::string status() const { return run_summaries(database).at(0).status; }
};

std::vector<std::string> everything(const Database& database) {
  std::vector<std::string> all;
  for (const char* type : {"table", "view"})
    for (const std::string& name : names_of(database, type))
      for (const std::string& row : rows_of(database, "SELECT * FROM \"" + name + "\"")) {
        all.push_back(name);
        all.back() += ": " + row;
      }
  return all;
}

}  // namespace

TEST_CASE("the architecture's example record is stored member by member") {
  Launched yard;
  RecordLog log(yard.run, 1, 0);
  for (int i = 0; i < 4; ++i) yard.ingest.record(log.next("message", {{"level", "info"}, {"text", "…"}}));
  std::string line =
      R"({"v":1,"run":"3f9a1c20b7de","attempt":1,"rank":0,"seq":4,"type":"epoch","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":12.75,"epoch":2,"train_seconds":1.5,"validation_seconds":0.125,"seconds":{"data":0.0625,"forward":0.5,"backward":0.75,"exposed_communication":0.0625,"bubble":0,"optimizer":0.09375,"other":0.03125},"metrics":[{"phase":"train","name":"loss","sum":1234.5,"weight":4000},{"phase":"train","name":"correct","sum":3720,"weight":4000}],"crc":"ab4be0be"})";
  auto parsed = experiments::parse_line(line);
  REQUIRE(parsed.record);
  parsed.record->run = yard.key;
  CHECK(yard.ingest.record(*parsed.record) == Accepted::taken);
  CHECK(
      yard.rows("SELECT epoch, rank, time, elapsed_seconds, train_seconds, validation_seconds, data_seconds, "
                "forward_seconds, backward_seconds, exposed_communication_seconds, bubble_seconds, "
                "optimizer_seconds, other_seconds, extra FROM epoch") ==
      std::vector<std::string>{
          R"([2,0,"2026-11-20T09:30:12.345Z",12.75,1.5,0.125,0.0625,0.5,0.75,0.0625,0.0,0.09375,0.03125,null])"});
  CHECK(yard.rows("SELECT attempt, rank, epoch, phase, name, sum, weight FROM metric") ==
        std::vector<std::string>{R"([1,0,2,"train","correct",3720.0,4000.0])",
                                 R"([1,0,2,"train","loss",1234.5,4000.0])"});
}

TEST_CASE("a run is planned, then running, then finished after every rank's end record") {
  TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Ingest ingest(database);
  const auto run = make_run("mlp", 2, 0);
  const auto status = [&] { return run_summaries(database).at(0).status; };
  ingest.journal_entry(run_entry("sweep", {run}, "2026-11-20T08:00:00.000Z"));
  CHECK(status() == "planned");
  ingest.run_file(experiments::to_json(make_launch(run)));
  CHECK(status() == "running");
  RecordLog zero(run, 1, 0), one(run, 1, 1);
  for (RecordLog* log : {&zero, &one}) record_epochs(ingest, *log, 3);
  ingest.record(zero.next("end", end_body("finished", 3)));
  CHECK(status() == "running");
  ingest.record(one.next("end", end_body("finished", 4)));
  CHECK(status() == "finished");
  CHECK(run_summaries(database).at(0).total_seconds == 4);
}

TEST_CASE("a cause makes a run failed or interrupted and provides its first error line") {
  for (const std::string outcome : {"failed", "interrupted"}) {
    Launched yard;
    RecordLog orchestrator(yard.run, 1, std::nullopt), zero(yard.run, 1, 0);
    yard.ingest.record(zero.next("end", end_body("failed", 3, "rank 0 says: loss is not a number")));
    CHECK(yard.status() == "running");
    yard.ingest.record(orchestrator.next("exited", {{"of_rank", 1}, {"code", -1}, {"signal", 9}}));
    yard.ingest.record(orchestrator.next(
        "cause",
        {{"outcome", outcome}, {"of_rank", 1}, {"error", "killed by signal 9"}, {"log", "rank-1.log"}}));
    yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}, {"error", "a later one"}}));
    CHECK(yard.status() == outcome);
    CHECK(run_summaries(yard.database).at(0).failure == "killed by signal 9");
    CHECK(attempts_of_run(yard.database, yard.key).at(0).cause == "killed by signal 9");
    CHECK(yard.rows("SELECT of_rank, code, signal, log FROM event") ==
          std::vector<std::string>{R"([1,-1,9,null])", R"([1,null,null,"rank-1.log"])",
                                   R"([null,null,null,null])"});
  }
}

TEST_CASE("if a cause has no error, the error of the rank that ended first is used") {
  Launched yard;
  RecordLog orchestrator(yard.run, 1, std::nullopt), zero(yard.run, 1, 0), one(yard.run, 1, 1);
  zero.seq = one.seq = 0;
  yard.ingest.record(zero.next("message", {{"level", "info"}, {"text", "one second later"}}));
  yard.ingest.record(zero.next("end", end_body("failed", 3, "connection closed by peer")));
  yard.ingest.record(one.next("end", end_body("failed", 2, "out of memory")));
  yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}}));
  CHECK(run_summaries(yard.database).at(0).failure == "out of memory");
}

TEST_CASE("a run that all ranks finished is finished, even if a cause follows") {
  Launched yard;
  RecordLog orchestrator(yard.run, 1, std::nullopt), zero(yard.run, 1, 0), one(yard.run, 1, 1);
  for (RecordLog* log : {&zero, &one}) {
    record_epochs(yard.ingest, *log, 3);
    yard.ingest.record(log->next("end", end_body("finished", 3)));
  }
  yard.ingest.record(orchestrator.next("cause", {{"outcome", "interrupted"}, {"error", "Ctrl-C"}}));
  CHECK(yard.status() == "finished");
  CHECK(run_summaries(yard.database).at(0).failure.empty());
}

TEST_CASE("a record that is ingested again changes nothing") {
  Launched yard;
  RecordLog zero(yard.run, 1, 0);
  const auto start = zero.next("start", start_body(0, 2));
  const auto epoch = zero.next("epoch", epoch_body(1, 1.5, 0.25, {metric("train", "loss", 10, 4)}));
  CHECK(yard.ingest.record(start) == Accepted::taken);
  CHECK(yard.ingest.record(epoch) == Accepted::taken);
  const auto before = everything(yard.database);
  CHECK(yard.ingest.record(start) == Accepted::known);
  CHECK(yard.ingest.record(epoch) == Accepted::known);
  Ingest again(yard.database);
  CHECK(again.record(epoch) == Accepted::known);
  CHECK(yard.ingest.run_file(experiments::to_json(make_launch(yard.run))) == Accepted::known);
  yard.ingest.journal_entry(run_entry("sweep", {yard.run}, "2026-11-20T08:00:00.000Z"));
  CHECK(everything(yard.database) == before);
}

TEST_CASE("records after a missing one are rejected until the missing one arrives") {
  Launched yard;
  RecordLog zero(yard.run, 1, 0);
  const auto first = zero.next("message", {{"level", "info"}, {"text", "first"}});
  const auto second = zero.next("message", {{"level", "info"}, {"text", "second"}});
  const auto third = zero.next("message", {{"level", "info"}, {"text", "third"}});
  CHECK(yard.ingest.record(first) == Accepted::taken);
  CHECK(yard.ingest.record(third) == Accepted::gap);
  CHECK(yard.rows("SELECT next_seq, missing_seq FROM record_log") == std::vector<std::string>{"[1,1]"});
  CHECK(yard.ingest.record(second) == Accepted::taken);
  CHECK(yard.ingest.record(third) == Accepted::taken);
  CHECK(yard.rows("SELECT next_seq, missing_seq FROM record_log") == std::vector<std::string>{"[3,null]"});
  CHECK(yard.rows("SELECT text FROM message ORDER BY seq").size() == 3);
}

TEST_CASE("unknown types and members are stored unchanged") {
  Launched yard;
  RecordLog zero(yard.run, 1, 0);
  yard.ingest.record(zero.next("checkpoint", {{"step", 7}, {"layers", {{"0", 0.5}}}}));
  json epoch = epoch_body(1, 1.5, 0.25, {metric("train", "loss", 10, 4)});
  epoch["temperature"] = 61.5;
  epoch["seconds"]["checkpoint"] = 0.5;
  epoch["metrics"][0]["unit"] = "nats";
  yard.ingest.record(zero.next("epoch", epoch));
  json start = start_body(0, 2);
  start["versions"]["nccl"] = "2.29.7";
  yard.ingest.record(zero.next("start", start));
  CHECK(yard.rows("SELECT type, problem, json_extract(body, '$.layers') FROM extra_record") ==
        std::vector<std::string>{R"(["checkpoint",null,"{\"0\":0.5}"])"});
  CHECK(json::parse(select(yard.database, "SELECT extra FROM epoch").rows[0][0].get<std::string>()) ==
        json{{"temperature", 61.5},
             {"seconds", {{"checkpoint", 0.5}}},
             {"metrics", {{"0", {{"unit", "nats"}}}}}});
  CHECK(yard.rows("SELECT trainyard_version, libtorch_version, start_extra FROM process") ==
        std::vector<std::string>{R"(["0.1.0","2.13.0","{\"versions\":{\"nccl\":\"2.29.7\"}}"])"});
}

TEST_CASE("a record that does not fit its type is stored whole with the reason, and the next one is read") {
  Launched yard;
  RecordLog zero(yard.run, 1, 0);
  const std::vector<json> wrong{
      {{"epoch", "two"}},
      {{"epoch", 0}},
      {{"epoch", 2}, {"train_seconds", "long"}},
      {{"epoch", 2}, {"seconds", 3}},
      {{"epoch", 18446744073709551615ULL}},
      {{"epoch", 2}, {"metrics", json::array({metric("train", "loss", 1, 2), {{"phase", 7}}})}},
      {{"epoch", 2}, {"metrics", "none"}}};
  for (const json& body : wrong) CHECK(yard.ingest.record(zero.next("epoch", body)) == Accepted::taken);
  CHECK(yard.rows("SELECT * FROM epoch").empty());
  CHECK(yard.rows("SELECT * FROM metric").empty());
  CHECK(yard.rows("SELECT * FROM extra_record WHERE problem IS NOT NULL").size() == wrong.size());
  CHECK(yard.ingest.record(zero.next("epoch", epoch_body(1, 1, 1))) == Accepted::taken);
  CHECK(yard.rows("SELECT * FROM epoch").size() == 1);
}

TEST_CASE("a rank cannot write the orchestrator's records, and the orchestrator cannot write a rank's") {
  Launched yard;
  RecordLog zero(yard.run, 1, 0), orchestrator(yard.run, 1, std::nullopt);
  yard.ingest.record(zero.next("cause", {{"outcome", "failed"}}));
  yard.ingest.record(orchestrator.next("end", end_body("finished", 1)));
  CHECK(yard.status() == "running");
  CHECK(yard.rows("SELECT rank, type FROM extra_record WHERE problem IS NOT NULL") ==
        std::vector<std::string>{R"([-1,"end"])", R"([0,"cause"])"});
}

TEST_CASE("records of an unknown rank or attempt are refused") {
  Launched yard;
  RecordLog two(yard.run, 1, 2), later(yard.run, 2, 0), other(make_run("cnn", 1, 0), 1, 0),
      negative(yard.run, 1, -1);
  CHECK(yard.ingest.record(two.next("start", start_body(2, 2))) == Accepted::refused);
  CHECK(yard.ingest.record(later.next("start", start_body(0, 2))) == Accepted::refused);
  CHECK(yard.ingest.record(other.next("start", start_body(0, 1))) == Accepted::refused);
  CHECK(yard.rows("SELECT * FROM record_log").empty());
}

TEST_CASE("an epoch that is recorded twice counts once, with its last values") {
  Launched yard;
  RecordLog zero(yard.run, 1, 0);
  yard.ingest.record(
      zero.next("epoch", epoch_body(1, 9, 9, {metric("train", "loss", 9, 1), metric("train", "old", 9, 1)})));
  yard.ingest.record(zero.next("epoch", epoch_body(1, 2, 3, {metric("train", "loss", 4, 1)})));
  CHECK(yard.rows("SELECT train_seconds, validation_seconds FROM epoch") ==
        std::vector<std::string>{"[2.0,3.0]"});
  CHECK(yard.rows("SELECT name, sum FROM metric") == std::vector<std::string>{R"(["loss",4.0])"});
}

TEST_CASE("hostile strings are stored as data everywhere") {
  TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Ingest ingest(database);
  const std::string hostile =
      "Robert'); DROP TABLE run; -- \"`\n\xF0\x9F\x9A\x82" + std::string("\0after", 6);
  auto run = make_run("mlp", 1, 0);
  run.model = run.strategy.name = run.data.dataset = hostile;
  run.hyperparameters[hostile] = hostile;
  ingest.journal_entry(run_entry(hostile, {run}, "2026-11-20T08:00:00.000Z"));
  auto launch = make_launch(run);
  launch.experiment = launch.circumstances.host = hostile;
  ingest.run_file(experiments::to_json(launch));
  RecordLog zero(run, 1, 0), orchestrator(run, 1, std::nullopt);
  ingest.record(zero.next(hostile, {{hostile, hostile}}));
  ingest.record(zero.next("epoch", epoch_body(1, 1, 1, {metric(hostile, hostile, 1, 1)})));
  ingest.record(zero.next("message", {{"level", hostile}, {"text", hostile}}));
  ingest.record(orchestrator.next("cause", {{"outcome", hostile}, {"error", hostile}}));
  const RunSummary summary = run_summaries(database, hostile).at(0);
  CHECK(summary.experiment == hostile);
  CHECK(summary.model == hostile);
  CHECK(summary.strategy == hostile);
  CHECK(std::get<std::string>(summary.axes.at(hostile)) == hostile);
  CHECK(summary.status == "failed");
  CHECK(summary.failure == hostile);
  CHECK(epoch_averages(database, hostile).size() == 1);
  CHECK(latest_plan(database, hostile).keys.size() == 1);
  CHECK(keys_with_prefix(database, hostile).empty());
  CHECK(select(database, "SELECT text FROM message").rows[0][0].get<std::string>() == hostile);
}

TEST_CASE("an invalid run file is an error and leaves no rows behind") {
  TemporaryFolder folder;
  Database database = Database::open_for_writing(folder / "results.db");
  Ingest ingest(database);
  json wrong = experiments::to_json(make_launch(make_run("mlp", 1, 0)));
  wrong["resumes_attempt"] = "first";
  CHECK_THROWS_AS(ingest.run_file(wrong), InternalError);
  CHECK_THROWS_AS(ingest.run_file({{"v", 1}, {"run", "x"}}), InternalError);
  CHECK(rows_of(database, "SELECT * FROM run").empty());
}
