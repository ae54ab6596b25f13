// Elastic replicas, through the real programs: an attempt resumes with fewer of them.
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>

#include "base/host.h"
#include "tests/e2e/strategies/query_rows.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace fs = std::filesystem;

namespace {

constexpr int epochs = 60;

std::string file_with(const std::string& ddp, const std::string& defaults = "checkpoint = \"epoch\"\n") {
  return sweep_file(epochs, R"("single", "ddp")", 1) + "batch = 100\nlearning_rate = 0.005\n" + defaults +
         "[strategy.ddp]\n" + ddp + "[compare]\naxis = \"strategy\"\nbaseline = \"single\"\n";
}

const std::vector<std::string> only_ddp = {
    "run", "small.toml", "--no-report", "--where", "strategy=ddp", "--max-retries", "1"};

// Whether this attempt at the only run of the yard has written a checkpoint and its ranks still train.
bool trains_on(const Scratch& scratch, int attempt, std::size_t ranks) {
  std::error_code missing;
  for (const auto& run : fs::directory_iterator(scratch.path() / "yard/runs", missing)) {
    const fs::path records = run.path() / ("attempt-" + std::to_string(attempt)) / "rank-0.records.jsonl";
    if (fs::exists(records) && contains(tests::read_text(records), R"("type":"checkpoint")"))
      return ranks_below(scratch.path()).size() == ranks;
  }
  return false;
}

std::vector<double> numbers_of(const Scratch& scratch, const std::string& yard, const std::string& sql) {
  const auto database = db::Database::open_read_only(scratch.path() / yard / "results.db");
  std::vector<double> numbers;
  for (const auto& row : db::select(database, sql).rows)
    for (const auto& value : row) numbers.push_back(value.get<double>());
  return numbers;
}

constexpr const char* losses =
    "SELECT train_loss, validation_loss FROM epoch_average WHERE strategy = 'ddp' ORDER BY epoch";

// Checks all losses of the yard against those of an undisturbed run with all replicas.
void check_losses(const Scratch& scratch, double tolerance) {
  const auto whole =
      scratch.at({"run", "whole.toml", "--no-report", "--yard", "whole", "--where", "strategy=ddp"});
  CHECK_MESSAGE(whole.code == 0, (whole.out + whole.err));
  const auto found = numbers_of(scratch, "yard", losses), expected = numbers_of(scratch, "whole", losses);
  REQUIRE(found.size() == 2 * epochs);
  REQUIRE(expected.size() == found.size());
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(found[i] - expected[i]) / expected[i]);
  MESSAGE("largest relative difference of a loss: " << largest);
  CHECK(largest < tolerance);
}

}  // namespace

TEST_CASE("a run whose rank was killed resumes with one replica fewer, and its losses stay the same") {
  const Scratch scratch;
  const std::string three = "replicas = 3\n";
  scratch.write("small.toml", file_with(three + "min_replicas = 2\n"));
  scratch.write("whole.toml", file_with(three));
  {
    Trainyard running(scratch.path(), only_ddp);
    REQUIRE(comes_true([&] { return trains_on(scratch, 1, 3); }));
    kill(ranks_below(scratch.path()).back(), SIGKILL);
    const auto ended = running.wait();
    CHECK_MESSAGE(ended.code == 0, (ended.out + ended.err));
    CHECK(contains(ended.out, "2 of 3 replicas: rank "));
  }
  CHECK(rows_of(scratch,
                "SELECT attempt, world_size, launch ->> '$.membership.replicas', launch ->> "
                "'$.work.strategy.replicas' "
                "FROM attempt ORDER BY attempt") == "[1,3,null,3]\n[2,2,2,3]\n");
  CHECK(rows_of(scratch, "SELECT replicas, status, epochs_done FROM run_summary WHERE strategy = 'ddp'") ==
        "[3,\"finished\",60]\n");
  check_losses(scratch, 1e-6);

  // Its times do not count, and each output says why.
  const std::string why = "was killed in attempt 1";
  CHECK(contains(rows_of(scratch, "SELECT times_count, times_problem FROM final_metrics"),
                 "[0,\"2 of 3 replicas: rank "));
  CHECK(contains(
      checked_output(scratch.at({"show", "last"}), 0, "times do not count: 2 of 3 replicas: rank ").out,
      why));
  CHECK(scratch.at({"run", "small.toml"}).code == 0);  // the baseline, and not ddp again
  CHECK(rows_of(scratch, "SELECT COUNT(*) FROM attempt") == "[3]\n");
  CHECK(contains(scratch.at({"compare"}).out, why));
  const auto page = tests::read_text(scratch.path() / "yard/reports/small/index.html");
  CHECK(contains(page, "times not compared: 2 of 3 replicas: rank "));
  CHECK(scratch.at({"db", "check"}).code == 0);
}

TEST_CASE("an interrupted run continues on fewer cores with fewer replicas, and later with all again") {
  const std::vector<int> cores = affinity();
  if (cores.size() < 2) {
    MESSAGE("skipped: needs two cores");
    return;
  }
  const Scratch scratch;
  const std::string two = "replicas = 2\n";
  scratch.write("small.toml", file_with(two + "min_replicas = 1\n"));
  scratch.write("whole.toml", file_with(two));
  const auto interrupt = [&](int attempt, std::size_t ranks) {
    Trainyard running(scratch.path(), only_ddp);
    REQUIRE(comes_true([&] { return trains_on(scratch, attempt, ranks); }));
    running.signal(SIGINT);
    CHECK(running.wait().code == 130);
  };
  interrupt(1, 2);
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cores.front()), &one);
  sched_setaffinity(0, sizeof one, &one);
  checked_output(scratch.at({"plan", "small.toml"}), 0, "1 of 2 replicas: there is 1 device, not 2");
  interrupt(2, 1);
  sched_setaffinity(0, sizeof all, &all);
  const auto last = scratch.at(only_ddp);
  CHECK_MESSAGE(last.code == 0, (last.out + last.err));
  CHECK(rows_of(scratch, "SELECT attempt, world_size FROM attempt ORDER BY attempt") ==
        "[1,2]\n[2,1]\n[3,2]\n");
  CHECK(contains(rows_of(scratch, "SELECT times_problem FROM final_metrics"),
                 "1 of 2 replicas: there is 1 device, not 2"));
  check_losses(scratch, 1e-6);
}

TEST_CASE("a wrong min_replicas is an error at its place, and nothing starts") {
  const Scratch scratch;
  const auto error = [&](const std::string& ddp, const std::string& text,
                         const std::string& defaults = "checkpoint = \"epoch\"\n") {
    scratch.write("small.toml", file_with(ddp, defaults));
    checked_error(scratch.at({"run", "small.toml"}), 2, text);
    CHECK_FALSE(fs::exists(scratch.path() / "yard/runs"));
  };
  error("replicas = 3\nmin_replicas = 4\n", "must be at most its 3 replicas, but is 4");
  error("replicas = 3\nmin_replicas = 2\n", "min_replicas needs checkpoint = \"epoch\"", "");
  error("replicas = 3\nmin_replicas = 2\n", "min_replicas needs sampler \"exact\"",
        "checkpoint = \"epoch\"\nsampler = \"distributed\"\n");
  error("kind = \"ddp\"\nmin_replicas = 0\n", "min_replicas must be");
}
