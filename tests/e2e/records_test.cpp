// Arms with impossible records. They fail with the rank, the record and the error, and get no verdict.

#include <doctest/doctest.h>

#include "experiments/protocol/record.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// Shell function `sound EPOCH`: records a correct epoch of one of two ranks that share 100 samples.
constexpr const char* honest = R"sh(
sound() {
  record epoch "\"epoch\":$1,\"train_seconds\":${2:-0.001},\"validation_seconds\":0.001,\"metrics\":[{\"phase\":\"train\",\"name\":\"loss\",\"sum\":5,\"weight\":50},{\"phase\":\"train\",\"name\":\"correct\",\"sum\":${3:-40},\"weight\":${4:-50}}]${5:-}"
}
)sh";

struct Ended {
  int code;
  std::string said;
};

// Runs such an arm.
Ended ended(const Scratch& scratch, const std::string& body) {
  scratch.write("arm.sh", shell_arm(honest + body));
  scratch.write("arms.toml", shell_arm_file("[1]", 2));
  const auto output = scratch.at({"run", "arms.toml", "--no-report", "--set", "epochs=3"});
  return {output.code, output.out + output.err};
}

// The error message of a run that fails.
std::string failure_of(const std::string& body) {
  const Scratch scratch;
  const Ended run = ended(scratch, body);
  CHECK_MESSAGE(run.code == 1, run.said);
  const auto status = scratch.at({"status", "--runs"});
  CHECK_MESSAGE(contains(status.out, "failed"), status.out);
  const auto check = scratch.at({"db", "check"});
  CHECK_MESSAGE(check.code == 0, (check.out + check.err));
  return run.said;
}

constexpr const char* by_rank_1 = "[ $RANK = 0 ] && { sound 1; sound 2; sound 3; finish; exit 0; }\n";

}  // namespace

TEST_CASE("an arm that records all requested epochs with sound sums and times has finished") {
  const Scratch scratch;
  const Ended run = ended(scratch, "record start '\"learning_rate\":0.1'\nsound 1\nsound 2\nsound 3\nfinish");
  CHECK_MESSAGE(run.code == 0, run.said);
}

TEST_CASE("an arm that records one of three epochs fails, and the missing epochs and the rank are named") {
  const std::string said = failure_of(by_rank_1 + std::string("sound 2\nfinish"));
  CHECK_MESSAGE(
      contains(said, "rank 1 finished, but its records lack epochs 1, 3 of 3 (rank-1.records.jsonl:2)"),
      said);
  const std::string more = failure_of(by_rank_1 + std::string("for n in 1 2 3 4; do sound $n; done\nfinish"));
  CHECK_MESSAGE(contains(more, "rank 1, epoch 4: the run asks for 3 epochs (rank-1.records.jsonl:4)"), more);
}

TEST_CASE("impossible metrics fail the run, with rank, file and line") {
  struct Case {
    const char* second_epoch;
    const char* said;
  };
  for (const Case& each :
       {Case{"0.001 253 50",
             "rank 1, epoch 2: train correct has the sum 253 of a weight of 50, and it counts "
             "from 0 to its weight (rank-1.records.jsonl:2)"},
        Case{"0.001 -1 50", "rank 1, epoch 2: train correct has the sum -1 of a weight of 50"},
        Case{"0.001 -60 -50", "rank 1, epoch 2: train correct has the weight -50, but weights are ≥ 0"},
        Case{"0.001 40 49", "rank 1, epoch 2: train correct has a weight of 49, but in epoch 1 of 50"}}) {
    const std::string said =
        failure_of(by_rank_1 + std::string("sound 1\nsound 2 ") + each.second_epoch + "\nsound 3\nfinish");
    CHECK_MESSAGE(contains(said, each.said), said);
  }
}

TEST_CASE("times that do not fit the duration of the run fail it, with rank, line and both numbers") {
  const std::string long_ago =
      failure_of(by_rank_1 + std::string("sound 1\nsound 2 1000000000\nsound 3\nfinish"));
  CHECK_MESSAGE(contains(long_ago,
                         "rank 1, epoch 2: train_seconds and validation_seconds are 1000000000.003 s "
                         "up to here, but the run took at most "),
                long_ago);
  CHECK_MESSAGE(contains(long_ago, "s from launch to end (rank-1.records.jsonl:2)"), long_ago);
  const std::string negative = failure_of(by_rank_1 + std::string("sound 1\nsound 2 -5\nsound 3\nfinish"));
  CHECK_MESSAGE(contains(negative,
                         "rank 1, epoch 2: train_seconds is -5 s, but times are ≥ 0 s "
                         "(rank-1.records.jsonl:2)"),
                negative);
  const std::string total =
      failure_of(by_rank_1 + std::string("sound 1\nsound 2\nsound 3\n"
                                         "record end '\"status\":\"finished\",\"total_seconds\":3600'"));
  CHECK_MESSAGE(contains(total, "rank 1, record end: total_seconds is 3600 s, but the run took at most "),
                total);
}

TEST_CASE("ranks that state different terms fail the run, with the rank and the term") {
  struct Case {
    const char* of_rank_0;
    const char* of_rank_1;
    const char* said;
  };
  for (const Case& each :
       {Case{R"("global_batch":64)", R"("global_batch":32)",
             "rank 1 states another term than rank 0: global batch (samples per step) 32 against 64 "
             "(rank-1.records.jsonl:1)"},
        Case{R"("learning_rate":0.1)", R"("learning_rate":0.2)", "learning rate 0.2 against 0.1"},
        Case{R"("initial_weights":{"0.weight":"aa","2.weight":"bb"})",
             R"("initial_weights":{"0.weight":"aa","2.weight":"cc"})",
             "initial weights of layer 2.weight cc against bb"}}) {
    const std::string said =
        failure_of(std::string("[ $RANK = 0 ] && record start '") + each.of_rank_0 + "' || record start '" +
                   each.of_rank_1 + "'\nsound 1\nsound 2\nsound 3\nfinish");
    CHECK_MESSAGE(contains(said, each.said), said);
  }
  const std::string order =
      failure_of("for n in 1 2 3; do sound $n 0.001 40 50 \",\\\"batches\\\":\\\"$RANK\\\"\"; done\nfinish");
  CHECK_MESSAGE(
      contains(order, "rank 1, epoch 1: states another data order (batches) than rank 0: 1 against 0"),
      order);
  const Scratch scratch;  // stages have different layers, and replicas have different devices
  const Ended fine = ended(scratch,
                           "record start "
                           "\"\\\"stage\\\":$RANK,\\\"device\\\":\\\"cpu:$RANK\\\",\\\"initial_weights\\\":{"
                           "\\\"$RANK.weight\\\":\\\"a$RANK\\\"}\"\n"
                           "sound 1\nsound 2\nsound 3\nfinish");
  CHECK_MESSAGE(fine.code == 0, fine.said);
}

namespace {

// The folder of the only run's first attempt. Empty if there is none.
std::filesystem::path only_attempt(const std::filesystem::path& yard) {
  std::error_code missing;
  for (const auto& run : std::filesystem::directory_iterator(yard / "runs", missing))
    if (std::filesystem::exists(run.path() / "attempt-1")) return run.path() / "attempt-1";
  return {};
}

std::string states(const Scratch& scratch) {
  return scratch.at({"sql", "SELECT status FROM run_summary", "--format", "csv"}).out;
}

}  // namespace

TEST_CASE("the runner refuses an attempt whose rank has records, and changes nothing") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(1, R"("single")", 1));
  REQUIRE(scratch.at({"run", "small.toml", "--no-report"}).code == 0);
  const std::filesystem::path attempt = only_attempt(scratch.path() / "yard");
  const std::string before = tests::read_text(attempt / "rank-0.records.jsonl");
  checked_error(scratch.at({}, {{"TRAINYARD_RUN", (attempt / "run.json").string()}},
                           TRAINYARD_BUILD "/trainyard-runner"),
                1, "rank-0.records.jsonl: has records already");
  CHECK(tests::read_text(attempt / "rank-0.records.jsonl") == before);
  const auto into_the_attempt =
      scratch.at({"--records", attempt.string()}, {{"TRAINYARD_RUN", (attempt / "run.json").string()}},
                 TRAINYARD_BUILD "/trainyard-runner");
  CHECK(into_the_attempt.code == 1);
  CHECK(tests::read_text(attempt / "rank-0.records.jsonl") == before);
  CHECK(scratch.at({"db", "check"}).code == 0);
}

TEST_CASE("a finished run stays finished if records are appended to it and the database is rebuilt") {
  const FinishedArms scratch("epoch 1\nfinish", "[1]", 2);
  const auto metrics = [&] {
    return scratch.at({"sql", "SELECT train_loss FROM final_metrics", "--format", "csv"}).out;
  };
  const std::string before = metrics();
  const std::filesystem::path attempt = only_attempt(scratch.path() / "yard");
  for (const int rank : {0, 1}) {  // as a program does that is started again
    experiments::RecordWriter records(attempt / experiments::rank_records_name(rank),
                                      attempt.parent_path().filename(), 1, rank);
    records.append("start", {{"world_size", 2}});
    records.append("epoch", {{"epoch", 1}, {"train_seconds", 9}});
    records.append("test", {{"seconds", 0.1}});
    records.append("end", {{"status", rank == 0 ? "finished" : "failed"}});
  }
  const auto check = scratch.at({"db", "check"});
  CHECK_MESSAGE(contains(check.out, "A rebuild takes the files"), check.out);
  CHECK(states(scratch) == "status\nfinished\n");
  REQUIRE(scratch.at({"db", "rebuild"}).code == 0);
  CHECK(states(scratch) == "status\nfinished\n");
  CHECK(metrics() == before);
  CHECK(scratch.at({"db", "check"}).code == 0);
  const auto again = scratch.at({"run", "arms.toml", "--no-report"});
  CHECK_MESSAGE(contains(again.out, "0 runs finished, 1 was finished before"), (again.out + again.err));
}
