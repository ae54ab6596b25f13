// Runs with parameter servers, through the real programs.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/e2e/strategies/query_rows.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

const std::string servers = R"([strategy.tf]
kind = "parameter-server"
servers = 2
[strategy.whole]
kind = "parameter-server"
servers = 3
placement = "whole"
[strategy.async]
kind = "parameter-server"
mode = "async"
staleness = 3
[compare]
axis = "strategy"
baseline = "single"
[machine]
exclusive = "devices"
)";

}  // namespace

TEST_CASE("servers train what ddp trains bit by bit, and asynchronous ones can be replayed") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(3, R"("single", "ddp", "tf", "whole", "async")", 1) + servers);
  const auto run = scratch.at({"run", "small.toml"});
  CHECK_MESSAGE(run.code == 0, (run.out + run.err));
  CHECK(losses_of(scratch, "tf") == losses_of(scratch, "ddp"));
  CHECK(losses_of(scratch, "whole") == losses_of(scratch, "ddp"));
  CHECK(losses_of(scratch, "async") != losses_of(scratch, "ddp"));
  CHECK(rows_of(scratch, "SELECT strategy, replicas, stages, servers FROM run_summary ORDER BY 1") ==
        "[\"async\",2,1,1]\n[\"ddp\",2,1,0]\n[\"single\",1,1,0]\n[\"tf\",2,1,2]\n[\"whole\",2,1,3]\n");
  // a server is not a replica
  CHECK(rows_of(scratch, "SELECT strategy, MAX(replica) FROM epoch_replica GROUP BY 1 ORDER BY 1") ==
        "[\"async\",1]\n[\"ddp\",1]\n[\"single\",0]\n[\"tf\",1]\n[\"whole\",1]\n");

  const auto compared = scratch.at({"compare"});
  CHECK(contains(
      compared.out,
      "declared: asynchronous servers are another algorithm, with stale parameters: 2 replicas with the "
      "bound 3 ["));
  CHECK_FALSE(contains(compared.out, "NOT COMPARABLE"));
  const auto page = tests::read_text(scratch.path() / "yard/reports/small/index.html");
  CHECK(contains(page, "and those of asynchronous servers with their replay"));
  CHECK(contains(page, "2 replicas and 2 servers"));
  CHECK(contains(page, "What ranks send and hold"));
  const auto ranks = scratch.at({"report", "--format", "csv", "--out", "csv"});
  CHECK_MESSAGE(ranks.code == 0, (ranks.out + ranks.err));
  const auto table = tests::read_text(scratch.path() / "csv/tables/ranks.csv");
  CHECK(contains(table, ",tf,server,"));
  CHECK(contains(table, ",async,server,"));
  CHECK(contains(table, "\"0: "));

  const auto key_of = [&](const std::string& strategy) {
    const std::string row =
        rows_of(scratch, "SELECT run_key FROM run_summary WHERE strategy = '" + strategy + "'");
    return row.substr(2, 12);
  };
  const auto replay = scratch.at({"replay", key_of("async")});
  CHECK_MESSAGE(replay.code == 0, (replay.out + replay.err));
  CHECK(contains(replay.out, "The replay has the parameters of the run, bit by bit."));
  checked_error(scratch.at({"replay", key_of("tf")}), 2, "has no epoch of asynchronous servers");

  const auto log = scratch.path() / "yard/runs" / key_of("async") / "attempt-1/server-0.epoch-2.log";
  REQUIRE(std::filesystem::exists(log));
  std::filesystem::remove(log);
  checked_error(scratch.at({"replay", key_of("async")}), 2, "the log of a server is missing or damaged");
}

TEST_CASE("if a server or a replica is killed, the attempt fails with the cause, and the run resumes") {
  for (const char* strategy : {"tf", "async"}) {
    CAPTURE(strategy);
    const Scratch scratch;
    constexpr int epochs = 80;
    scratch.write("small.toml", sweep_file(epochs, std::string("\"") + strategy + "\"", 1) +
                                    "checkpoint = \"epoch\"\n" +
                                    servers.substr(0, servers.find("[compare]")));
    const std::vector<std::string> sweep = {"run", "small.toml", "--no-report"};
    const std::size_t ranks = strategy == std::string("tf") ? 4 : 3;
    {
      Trainyard running(scratch.path(), sweep);
      const auto has_checkpoint = [&] {
        std::error_code missing;
        for (const auto& file :
             std::filesystem::recursive_directory_iterator(scratch.path() / "yard/runs", missing))
          if (file.path().filename().string().ends_with(".stage-1.checkpoint")) return true;  // of server 0
        return false;
      };
      REQUIRE(comes_true([&] { return has_checkpoint() && ranks_below(scratch.path()).size() == ranks; }));
      kill(ranks_below(scratch.path()).back(), SIGKILL);
      CHECK(running.wait().code == 1);
    }
    CHECK(ranks_below(scratch.path()).empty());
    CHECK(contains(scratch.at({"show", "last"}).out, "killed by signal 9"));
    const auto again = scratch.at(sweep);
    CHECK_MESSAGE(again.code == 0, (again.out + again.err));
    CHECK(contains(scratch.at({"show", "last"}).out, "resumes after epoch "));
    CHECK(rows_of(scratch, "SELECT status, epochs_done FROM run_summary") == "[\"finished\",80]\n");
    if (strategy == std::string("async")) CHECK(scratch.at({"replay", "last"}).code == 0);
  }
}
