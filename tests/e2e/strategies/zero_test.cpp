// Runs of strategy zero, through the real programs.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/e2e/strategies/query_rows.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

namespace trainyard::e2e::zero_test {

namespace {

const std::string kinds = R"([strategy.one]
kind = "zero"
sharding = "optimizer"
[strategy.two]
kind = "zero"
sharding = "gradients"
)";
const std::string messages = "[machine]\nexclusive = \"devices\"\ncommunicator = \"gloo\"\n";

}  // namespace

TEST_CASE("zero trains what ddp trains bit by bit, over shared memory and over messages") {
  std::string shared;
  for (const std::string& machine : {std::string(), messages}) {
    CAPTURE(machine);
    const Scratch scratch;
    scratch.write("small.toml", sweep_file(2, R"("single", "ddp", "zero", "one", "two")", 1) +
                                    "optimizer = \"adam\"\n" + kinds + "[compare]\naxis = \"strategy\"\n" +
                                    "baseline = \"single\"\n" + machine);
    const auto run = scratch.at({"run", "small.toml"});
    CHECK_MESSAGE(run.code == 0, (run.out + run.err));
    for (const char* strategy : {"zero", "one", "two"})
      CHECK(losses_of(scratch, strategy) == losses_of(scratch, "ddp"));
    CHECK((shared.empty() || shared == losses_of(scratch, "zero")));
    shared = losses_of(scratch, "zero");
    CHECK_FALSE(contains(scratch.at({"compare"}).out, "NOT COMPARABLE"));

    // each rank of each run says what it held
    CHECK(rows_of(scratch,
                  "SELECT COUNT(*) FROM epoch WHERE extra ->> '$.held_bytes.parameters' > 0 AND "
                  "extra ->> '$.held_bytes.gradients' > 0 AND extra ->> '$.held_bytes.state' > 0") ==
          "[18]\n");
    const std::string share =
        "SELECT ROUND(MAX(z.extra ->> '$.held_bytes.{}') * 1.0 / MAX(s.extra ->> '$.held_bytes.{}'), 1) "
        "FROM epoch z JOIN run zr USING (run_key) CROSS JOIN epoch s JOIN run sr ON sr.run_key = s.run_key "
        "WHERE sr.strategy = 'single' AND zr.strategy = 'zero'";
    const auto share_of = [&](const std::string& what) {
      std::string sql = share;
      for (auto at = sql.find("{}"); at != std::string::npos; at = sql.find("{}")) sql.replace(at, 2, what);
      return rows_of(scratch, sql);
    };
    CHECK(share_of("state") == "[0.5]\n");
    CHECK(share_of("parameters") ==
          (machine.empty() ? "[0.5]\n" : "[0.9]\n"));  // one layer is 87 % of the MLP
  }
}

TEST_CASE(
    "if a replica of zero is killed, the attempt fails with the cause, and the run resumes with equal "
    "losses") {
  for (const std::string& machine : {std::string("[machine]\nexclusive = \"devices\"\n"), messages}) {
    CAPTURE(machine);
    constexpr int epochs = 60;
    const Scratch whole, scratch;
    const std::string file = sweep_file(epochs, R"("zero")", 1) +
                             "optimizer = \"adam\"\ncheckpoint = \"epoch\"\n" + "save = \"best\"\n" + machine;
    const std::vector<std::string> sweep = {"run", "small.toml", "--no-report"};
    whole.write("small.toml", file);
    scratch.write("small.toml", file);
    CHECK(whole.at(sweep).code == 0);
    {
      Trainyard running(scratch.path(), sweep);
      const auto has_checkpoint = [&] {
        std::error_code missing;
        for (const auto& found :
             std::filesystem::recursive_directory_iterator(scratch.path() / "yard/runs", missing))
          if (found.path().filename().string().ends_with(".stage-1.checkpoint")) return true;  // of replica 1
        return false;
      };
      REQUIRE(comes_true([&] { return has_checkpoint() && ranks_below(scratch.path()).size() == 2; }));
      kill(ranks_below(scratch.path()).back(), SIGKILL);
      CHECK(running.wait().code == 1);
    }
    CHECK(contains(scratch.at({"show", "last"}).out, "killed by signal 9"));
    const auto again = scratch.at(sweep);
    CHECK_MESSAGE(again.code == 0, (again.out + again.err));
    CHECK(contains(scratch.at({"show", "last"}).out, "resumes after epoch "));
    CHECK(losses_of(scratch, "zero") == losses_of(whole, "zero"));
  }
}

}  // namespace trainyard::e2e::zero_test
