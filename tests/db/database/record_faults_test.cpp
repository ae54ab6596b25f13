// Attempts whose ranks all report that they finished, but whose records are impossible.
#include "db/database/record_faults.h"

#include <SQLiteCpp/Database.h>
#include <doctest/doctest.h>

#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/evidence.h"
#include "tests/db/support/checked_yard.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::db;
using namespace trainyard::db::testing;
using nlohmann::json;

namespace {

json sums(double correct, double weight) {
  return json::array({metric("train", "loss", 5, weight), metric("train", "correct", correct, weight)});
}

json epoch_of(std::int64_t epoch, const json& metrics, double seconds = 1) {
  json body = epoch_body(epoch, seconds, 0.5);
  body["metrics"] = metrics;
  return body;
}

// An attempt whose ranks write these records before their `end` records.
void attempt_of(Yard& yard, const experiments::Run& run, int number,
                const std::vector<std::vector<std::pair<std::string, json>>>& ranks,
                std::optional<experiments::Resumes> resumes = {}, bool finished = true) {
  auto launch = make_launch(run, number);
  launch.resumes = resumes;
  if (run.strategy.min_replicas && std::cmp_less(ranks.size(), run.strategy.replicas))
    launch.membership = experiments::Membership{std::ssize(ranks), "fewer replicas"};
  yard.ingest.run_file(experiments::to_json(launch));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RecordLog log(run, number, static_cast<int>(rank));
    for (const auto& [type, body] : ranks[rank]) yard.ingest.record(log.next(type, body));
    if (finished) yard.ingest.record(log.next("end", end_body("finished", 2)));
  }
}

std::string fault_of(const Yard& yard, const experiments::Run& run, int attempt = 1) {
  const auto fault = attempt_fault(yard.database, key(run), attempt);
  return fault ? fault->error : "";
}

std::string state_of(const Yard& yard) {
  return select(yard.database, "SELECT status FROM run_summary").rows.at(0).at(0).get<std::string>();
}

}  // namespace

TEST_CASE("each rank must record each requested epoch, and missing ones are named") {
  CheckedYard yard;
  const auto run = make_run("mlp", 2, 0, 7);
  yard.plan({run});
  std::vector<std::pair<std::string, json>> all, some;
  for (const int epoch : {1, 2, 3, 4, 5, 6, 7}) all.emplace_back("epoch", epoch_of(epoch, sums(1, 4)));
  for (const int epoch : {1, 3, 4}) some.emplace_back("epoch", epoch_of(epoch, sums(1, 4)));
  attempt_of(yard, run, 1, {all, some});
  CHECK(fault_of(yard, run) == "rank 1 finished, but its records lack epochs 2, 5 to 7 of 7");
  CHECK(state_of(yard) == "failed");
  CHECK(select(yard.database, "SELECT failure FROM run_summary").rows[0][0] == fault_of(yard, run));
  CHECK(final_metrics(yard.database, "sweep").empty());
  attempt_of(yard, run, 2, {all, all});
  CHECK(state_of(yard) == "finished");
}

TEST_CASE("if an epoch's record cannot be read, the reason is given") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0, 1);
  yard.plan({run});
  attempt_of(yard, run, 1, {{{"epoch", epoch_of(1, json::array({metric("train", "loss", 5, 4)}))}}});
  CHECK(fault_of(yard, run).empty());
  json body = epoch_of(1, sums(1, 4));
  body["metrics"][0]["weight"] = nullptr;
  attempt_of(yard, run, 2, {{{"epoch", body}}});
  CHECK(contains(fault_of(yard, run, 2),
                 "lack epoch 1 of 1; a record (seq 0) could not be read: member weight must be a number"));
  CHECK(state_of(yard) == "finished");  // attempt 1 counts
}

TEST_CASE("epochs of resumed attempts count together, and a fault in any of them is a fault of the run") {
  CheckedYard yard;
  const auto run = make_run("mlp", 1, 0, 4);
  yard.plan({run});
  const auto epochs = [](std::initializer_list<int> numbers, double correct) {
    std::vector<std::vector<std::pair<std::string, json>>> ranks(1);
    for (const int epoch : numbers) ranks[0].emplace_back("epoch", epoch_of(epoch, sums(correct, 4)));
    return ranks;
  };
  attempt_of(yard, run, 1, epochs({1, 2, 3}, 9), {}, false);
  attempt_of(yard, run, 2, epochs({3, 4}, 1), experiments::Resumes{1, 2});
  CHECK(contains(fault_of(yard, run, 2), "rank 0, epoch 1: train correct has the sum 9 of a weight of 4"));
  CHECK(attempt_fault(yard.database, key(run), 2)->attempt == 1);
  CHECK(resumable_attempts(yard.database, key(run)).empty());  // it would fail again
  attempt_of(yard, run, 3, epochs({1, 2, 3}, 2), {}, false);
  CHECK(resumable_attempts(yard.database, key(run)).size() == 1);
  attempt_of(yard, run, 4, epochs({3, 4}, 1), experiments::Resumes{3, 2});
  CHECK(fault_of(yard, run, 4).empty());
  CHECK(state_of(yard) == "finished");
}

TEST_CASE(
    "ranks of an elastic run have the epochs of the attempts that they are in, and no others are missed") {
  CheckedYard yard;
  auto run = make_run("mlp", 3, 0, 6);
  run.strategy.min_replicas = 1;
  yard.plan({run});
  using Records = std::vector<std::pair<std::string, json>>;
  const auto ranks = [](std::size_t number, std::initializer_list<int> epochs) {
    Records records;
    for (const int epoch : epochs)
      records.emplace_back("epoch", epoch_of(epoch, sums(1, 12.0 / static_cast<double>(number))));
    return std::vector<Records>(number, records);
  };
  attempt_of(yard, run, 1, ranks(3, {1, 2}), {}, false);
  attempt_of(yard, run, 2, ranks(2, {3, 4}), experiments::Resumes{1, 2}, false);
  CHECK(resumable_attempts(yard.database, key(run)).back().whole_epochs == 4);
  attempt_of(yard, run, 3, ranks(3, {5, 6}), experiments::Resumes{2, 4});
  CHECK(fault_of(yard, run, 3) == "");
  REQUIRE(state_of(yard) == "finished");
  CHECK(select(yard.database, "SELECT times_problem FROM final_metrics").rows[0][0] == "fewer replicas");
  CHECK(select(yard.database, "SELECT world_size FROM attempt ORDER BY attempt").rows[1][0] == 2);
  CHECK(select(yard.database, "SELECT COUNT(*) FROM epoch_average").rows[0][0] == 6);

  auto lacking = ranks(3, {5, 6});
  lacking[2].erase(lacking[2].begin());
  attempt_of(yard, run, 4, lacking, experiments::Resumes{2, 4});
  CHECK(fault_of(yard, run, 4) == "rank 2 finished, but its records lack epoch 5 of 6");
  attempt_of(yard, run, 5, ranks(2, {3, 4, 5, 6}), experiments::Resumes{1, 2});
  CHECK(fault_of(yard, run, 5) == "");
}

TEST_CASE("the total weight of a phase stays the same over all ranks, however the ranks share it") {
  const auto two_ranks = [](double first, double second, const std::string& sampler) {
    Yard yard;
    auto run = make_run("mlp", 2, 0, 2);
    run.sampler = sampler;
    yard.plan({run});
    using Records = std::vector<std::pair<std::string, json>>;
    attempt_of(yard, run, 1,
               {Records{{"epoch", epoch_of(1, sums(1, 4))}, {"epoch", epoch_of(2, sums(1, first))}},
                Records{{"epoch", epoch_of(1, sums(1, 4))}, {"epoch", epoch_of(2, sums(1, second))}}});
    return fault_of(yard, run);
  };
  CHECK(two_ranks(3, 5, "exact").empty());
  CHECK(two_ranks(4, 5, "exact") ==
        "rank 1, epoch 2: train correct has a weight of 5, but in epoch 1 of 4, and over all ranks it must "
        "stay the same");
  CHECK(two_ranks(4, 5, "distributed").empty());  // padding sentences vary in length
}

TEST_CASE("times must fit the orchestrator's own measurement of the attempt, if there is one") {
  struct Case {
    json exited;
    double train_seconds;
    bool impossible;
  };
  for (const Case& each : {Case{{{"seconds", 4.0}}, 1, false}, Case{{{"seconds", 2.5}}, 1, true},
                           Case{json::object(), 3, false}}) {
    Yard yard;
    const auto run = make_run("mlp", 1, 0, 2);
    yard.plan({run});
    attempt_of(yard, run, 1,
               {{{"epoch", epoch_of(1, sums(1, 4), each.train_seconds)},
                 {"epoch", epoch_of(2, sums(1, 4), each.train_seconds)}}});
    CHECK(fault_of(yard, run).empty());  // not measured yet
    RecordLog orchestrator(run, 1, std::nullopt);
    json exited = each.exited;
    exited["of_rank"] = 0;
    yard.ingest.record(orchestrator.next("exited", exited));
    CHECK(state_of(yard) == (each.impossible ? "failed" : "finished"));
    if (each.impossible)
      CHECK_MESSAGE(
          contains(fault_of(yard, run), "rank 0, epoch 2: train_seconds and validation_seconds are "),
          fault_of(yard, run));
  }
}

TEST_CASE("a run with impossible records has failed, with the reason, and has no final metrics") {
  Yard yard;
  const auto good = make_run("mlp", 1, 0, 1), bad = make_run("mlp", 1, 1, 1);
  yard.plan({good, bad});
  for (const auto& run : {good, bad}) {
    yard.ingest.run_file(experiments::to_json(make_launch(run)));
    RecordLog log(run, 1, 0);
    yard.ingest.record(log.next("epoch", epoch_of(1, sums(key(run) == key(bad) ? 253 : 2, 100))));
    yard.ingest.record(log.next("end", end_body("finished", 2)));
  }
  CHECK(select(yard.database, "SELECT failure FROM run_summary WHERE status = 'failed'").rows.at(0).at(0) ==
        "rank 0, epoch 1: train correct has the sum 253 of a weight of 100, and it counts from 0 to its "
        "weight");
  CHECK(final_metrics(yard.database, "sweep").size() == 1);
}

TEST_CASE("a record that cannot be true fails its run, even if all other records are complete") {
  using Records = std::vector<std::pair<std::string, json>>;
  const auto good = epoch_of(1, sums(1, 4));
  const json test{{"seconds", 0.5}, {"metrics", json::array({metric("test", "correct", 9, 10)})}};
  const auto with = [&](const char* member, const json& value) {
    json body = good;
    body[member] = value;
    return body;
  };
  const auto end = end_body("finished", 2);
  struct Case {
    Records records;  // before the `end` record
    std::string error;
  };
  for (const auto& [records, error] : {
           Case{{{"epoch", good}, {"test", test}}, ""},
           Case{{{"epoch", with("seconds", {{"forward", 0.5}, {"other", -1e-9}})}}, ""},
           Case{{{"epoch", epoch_of(0, sums(1, 4))}, {"epoch", good}},
                "rank 0, record epoch (seq 0): epochs count from 1"},
           Case{{{"epoch", good}, {"epoch", epoch_of(-3, sums(1, 4))}},
                "rank 0, record epoch (seq 1): epochs count from 1"},
           Case{{{"epoch", good}, {"epoch", epoch_of(2, sums(1, 4))}},
                "rank 0, epoch 2: the run asks for 1 epochs"},
           Case{{{"epoch", good}, {"test", test}, {"test", test}},
                "rank 0, record test (seq 2): the rank has recorded its test already"},
           Case{{{"epoch", good}, {"test", {{"seconds", 0.5}}}, {"test", json::object()}},
                "rank 0, record test (seq 2): the rank has recorded its test already"},
           Case{{{"epoch", good}, {"end", end}},
                "rank 0, record end (seq 2): the rank has recorded its end already"},
           Case{{{"epoch", good}, {"end", end}, {"epoch", good}, {"odd", json::object()}},
                "rank 0, record epoch (seq 2): the rank has recorded its end already"},
           Case{{{"epoch", with("seconds", {{"forward", -0.5}})}},
                "rank 0, record epoch (seq 0): a member of seconds is below 0 s"},
           Case{{{"epoch", with("processor_seconds", -1)}},
                "rank 0, record epoch (seq 0): a member of seconds is below 0 s"},
           Case{{{"epoch", with("train_seconds", -1)}},
                "rank 0, epoch 1: train_seconds is -1 s, but times are ≥ 0 s"},
           Case{{{"epoch", epoch_of(1, sums(1, -4))}},
                "rank 0, epoch 1: train correct has the weight -4, but weights are ≥ 0"},
       }) {
    CheckedYard yard;
    const auto run = make_run("mlp", 1, 0, 1);
    yard.plan({run});
    attempt_of(yard, run, 1, {records});
    CHECK(fault_of(yard, run) == error);
    CHECK(state_of(yard) == (error.empty() ? "finished" : "failed"));
  }
}

TEST_CASE(
    "a record after the end is a fault if the orchestrator closed the attempt with a cause, else it came "
    "later") {
  for (const bool with_cause : {true, false}) {
    CheckedYard yard;
    const auto run = make_run("mlp", 1, 0, 1);
    yard.plan({run});
    yard.ingest.run_file(experiments::to_json(make_launch(run)));
    RecordLog orchestrator(run, 1, std::nullopt), rank(run, 1, 0);
    yard.ingest.record(orchestrator.next("launched"));
    yard.ingest.record(rank.next("epoch", epoch_of(1, sums(1, 4))));
    yard.ingest.record(rank.next("end", end_body("finished", 2)));
    CHECK_FALSE(fault_at_close(yard.database, key(run), 1).has_value());
    const auto before = rows_of(yard.database, "SELECT * FROM final_metrics");
    yard.ingest.record(rank.next("epoch", epoch_of(1, sums(2, 4))));
    yard.ingest.record(rank.next("test", {{"seconds", 0.5}}));
    yard.ingest.record(rank.next("end", end_body("failed", 3)));
    const auto fault = fault_at_close(yard.database, key(run), 1);
    REQUIRE(fault.has_value());
    CHECK(fault->error == "rank 0, record epoch (seq 2): the rank has recorded its end already");
    CHECK(fault->seq == 2);
    if (with_cause)
      yard.ingest.record(orchestrator.next("cause", {{"outcome", "failed"}, {"error", fault->error}}));
    CHECK(state_of(yard) == (with_cause ? "failed" : "finished"));
    CHECK(fault_of(yard, run) == (with_cause ? fault->error : ""));
    if (!with_cause) CHECK(rows_of(yard.database, "SELECT * FROM final_metrics") == before);
  }
}

TEST_CASE("a fault names the number of its record, by which its line is found") {
  Yard yard;
  const auto run = make_run("mlp", 1, 0, 1);
  yard.plan({run});
  const json test{{"seconds", 0.5}};
  attempt_of(yard, run, 1, {{{"epoch", epoch_of(1, sums(1, 4))}, {"test", test}, {"test", test}}});
  CHECK(attempt_fault(yard.database, key(run), 1)->seq == 2);
}
