// Runs with checkpoints, through the real programs. A killed and resumed run has the same results as an
// uninterrupted one.

#include <doctest/doctest.h>
#include <signal.h>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace fs = std::filesystem;

namespace {

constexpr int epochs = 100;
const std::vector<std::string> sweep = {"run", "small.toml", "--no-report", "--set", "checkpoint=epoch"};

std::string file_of(const std::string& strategies) {
  return sweep_file(epochs, strategies, 1) +
         "save = \"best\"\nsteps_per_epoch = 5\n[strategy.mp-ddp]\nmicro_batches = 2\n";
}

// True if a run has a checkpoint of epoch 3 or later.
bool has_checkpoint(const fs::path& yard) {
  std::error_code missing;
  for (const auto& run : fs::directory_iterator(yard / "runs", missing))
    for (const auto& file : fs::directory_iterator(run.path() / "checkpoints", missing))
      if (const std::string name = file.path().filename();
          name.ends_with(".checkpoint") && !name.starts_with("epoch-1.") && !name.starts_with("epoch-2."))
        return true;
  return false;
}

// Every measured value except times, with all digits.
std::string results(const Scratch& scratch, const std::string& yard) {
  const auto database = db::Database::open_read_only(scratch.path() / yard / "results.db");
  std::string text;
  for (const char* query :
       {"SELECT run_key, epoch, phase, name, value, weight FROM epoch_mean ORDER BY 1, 2, 3, 4",
        "SELECT run_key, test_loss, test_accuracy FROM final_metrics ORDER BY 1",
        "SELECT run_key, epochs_done, status FROM run_summary ORDER BY 1"})
    for (const auto& row : db::select(database, query).rows) text += nlohmann::json(row).dump() + "\n";
  return text;
}

// The best weights of this attempt at the only run of the yard.
std::string weights(const Scratch& scratch, const std::string& yard, int attempt) {
  const auto run = fs::directory_iterator(scratch.path() / yard / "runs")->path();
  return tests::read_text(run / ("attempt-" + std::to_string(attempt)) / "weights.safetensors");
}

}  // namespace

TEST_CASE("a run whose orchestrator was killed resumes after its last epoch, with bit-identical results") {
  const Scratch scratch;
  scratch.write("small.toml", file_of(R"("mp-ddp")"));
  {
    Trainyard running(scratch.path(), sweep);
    REQUIRE(comes_true([&] { return has_checkpoint(scratch.path() / "yard"); }));
    running.signal(SIGKILL);
    running.wait();
  }
  REQUIRE(comes_true([&] { return ranks_below(scratch.path()).empty(); }));
  const auto resumed = scratch.at({"resume", "--no-report"});
  CHECK_MESSAGE(resumed.code == 0, (resumed.out + resumed.err));
  const auto whole = scratch.at({"run", "small.toml", "--no-report", "--yard", "whole"});
  CHECK_MESSAGE(whole.code == 0, (whole.out + whole.err));
  CHECK(results(scratch, "yard") == results(scratch, "whole"));
  CHECK(weights(scratch, "yard", 2) == weights(scratch, "whole", 1));
  const auto shown = scratch.at({"show", "last"});
  CHECK(contains(shown.out, "attempt 2: finished"));
  CHECK(contains(shown.out, "resumes after epoch "));
  CHECK_FALSE(has_checkpoint(scratch.path() / "yard"));
  CHECK(scratch.at({"db", "check"}).code == 0);
}

TEST_CASE("a run with a killed rank or a Ctrl-C is resumed, and a removed run starts again from epoch 1") {
  const Scratch scratch;
  scratch.write("small.toml", file_of(R"("ddp")"));
  const auto yard = scratch.path() / "yard";
  {
    Trainyard running(scratch.path(), sweep);
    REQUIRE(comes_true([&] { return has_checkpoint(yard) && ranks_below(scratch.path()).size() == 2; }));
    const auto ranks = ranks_below(scratch.path());
    REQUIRE(ranks.size() == 2);
    kill(ranks.back(), SIGKILL);
    CHECK(running.wait().code == 1);
  }
  {
    Trainyard running(scratch.path(), sweep);
    REQUIRE(comes_true([&] { return ranks_below(scratch.path()).size() == 2; }));
    running.signal(SIGINT);
    CHECK(running.wait().code == 130);
  }
  const auto shown = scratch.at({"show", "last"});
  CHECK(contains(shown.out, "resumes after epoch "));
  CHECK(scratch.at({"rm", "last"}).code == 0);
  CHECK_FALSE(has_checkpoint(yard));
  const auto again = scratch.at(sweep);
  CHECK_MESSAGE(again.code == 0, (again.out + again.err));
  CHECK_FALSE(contains(again.out + again.err, "resumes after epoch"));
}
