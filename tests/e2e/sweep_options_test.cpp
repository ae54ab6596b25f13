// Selection of runs, retries, and when a sweep stops.

#include <doctest/doctest.h>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// A yard of arms with this script body. `run` takes further options.
class Arms {
 public:
  explicit Arms(const std::string& seeds, const std::string& body, const std::string& more = "")
      : scratch_(body, seeds, 1, more) {}

  const Scratch& scratch() const { return scratch_; }
  Output run(std::vector<std::string> options) const {
    options.insert(options.begin(), {"run", "arms.toml", "--no-report", "--order", "declared"});
    return run_trainyard(scratch_.path(), options);
  }
  Output resume(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"resume", "--no-report"});
    return run_trainyard(scratch_.path(), options);
  }
  // The status of each run as "SEED STATUS", in the order of the seeds.
  std::vector<std::string> states() const {
    const auto database = db::Database::open_read_only(scratch_.path() / "yard/results.db");
    std::vector<std::string> states;
    for (const auto& row :
         db::select(database, "SELECT seed || ' ' || status FROM run_summary ORDER BY seed").rows)
      states.push_back(row[0].get<std::string>());
    return states;
  }

 private:
  ArmScratch scratch_;
};

using Texts = std::vector<std::string>;

constexpr const char* seed_1_fails =
    "[ $seed = 1 ] && [ ! -e mended ] && { echo 'error: no luck' >&2; exit 3; }\nepoch 1\nfinish";

}  // namespace

TEST_CASE("--where and --exclude-where select runs, and the next sweep trains the rest") {
  const Arms arms("{ count = 4 }", "epoch 1\nfinish");
  CHECK(contains(arms.run({"--where", "seed=0", "--where", "seed=2"}).out,
                 "2 runs finished, 0 were finished before"));
  CHECK(arms.states() == Texts{"0 finished", "2 finished"});
  CHECK(contains(arms.run({"--exclude-where", "seed=1"}).out, "1 run finished, 2 were finished before"));
  CHECK(contains(arms.run({}).out, "1 run finished, 3 were finished before"));
  CHECK(arms.states() == Texts{"0 finished", "1 finished", "2 finished", "3 finished"});
  checked_error(arms.run({"--where", "sead=1"}), 2, "seed");
}

TEST_CASE("status counts the runs of the latest request, and lists earlier ones separately") {
  const Arms arms("{ count = 4 }", seed_1_fails);
  CHECK(arms.run({"--where", "seed=1,seed=2", "--max-failures", "1"}).code == 1);
  CHECK(arms.states() == Texts{"1 failed", "2 planned"});
  CHECK(arms.run({"--where", "seed=0"}).code == 0);
  const auto status = [&](const Texts& options = {}) {
    Texts arguments{"status"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_trainyard(arms.scratch().path(), arguments).out;
  };
  CHECK_MESSAGE(contains(status(),
                         "experiment  runs  planned  running  finished  failed  interrupted\n"
                         "arms           1        0        0         1       0            0\n"
                         "arms: 2 more runs, not in the latest plan: "
                         "1 planned, 1 failed\n"),
                status());
  CHECK(contains(status(), "arms: every run is finished; --all lists them\n"));
  const auto listed = status({"--all"});
  const auto others = listed.find("\nnot in the latest plan:\n");
  REQUIRE_MESSAGE(others != Texts::value_type::npos, listed);
  CHECK(contains(listed.substr(0, others), "  finished "));
  CHECK(contains(listed.substr(others), "  failed "));
  arms.scratch().write("mended", "");
  CHECK(arms.run({}).code == 0);
  CHECK_MESSAGE(contains(status(), "arms           4        0        0         4       0            0\n\n"),
                status());
}

TEST_CASE("--max-failures stops the sweep, --failed retries failed runs only, resume trains the rest") {
  const Arms arms("{ count = 4 }", seed_1_fails);
  const auto first = checked_error(arms.run({"--max-failures", "1"}), 1, "error: no luck");
  CHECK(contains(first.err, "given up: 2 runs were not trained after these failures"));
  CHECK(arms.states() == Texts{"0 finished", "1 failed", "2 planned", "3 planned"});
  const auto in_vain =
      checked_output(arms.resume({"--failed"}), 1, "4 runs: 1 finished before, 2 not selected, 1 to run");
  CHECK(contains(in_vain.out, "0 runs finished, 1 was finished before, 1 failed"));
  arms.scratch().write("mended", "");
  CHECK(contains(arms.resume({"--failed"}).out, "1 run finished, 1 was finished before, 0 failed"));
  CHECK(arms.states() == Texts{"0 finished", "1 finished", "2 planned", "3 planned"});
  CHECK(contains(arms.resume().out, "2 runs finished, 2 were finished before, 0 failed"));
}

TEST_CASE("--max-retries repeats a failed run, and each wait is twice as long as the one before") {
  const Arms arms("[5]", "[ $attempt -lt 3 ] && exit 3\nepoch 1\nfinish");
  const Output output = arms.run({"--max-retries", "2", "--backoff", "0.4"});
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  for (const char* wait : {"retrying in 0.4 s", "retrying in 0.8 s"})
    CHECK_MESSAGE(contains(output.out, wait), output.out);
  CHECK(contains(output.out, "1 run finished, 0 were finished before, 0 failed"));
  const auto shown = run_trainyard(arms.scratch().path(), {"show", "last"}).out;
  for (const char* line : {"attempt 1: failed", "attempt 2: failed", "attempt 3: finished"})
    CHECK_MESSAGE(contains(shown, line), shown);
  CHECK(arms.run({"--max-retries", "-1"}).code == 2);
  CHECK(arms.run({"--backoff", "nan"}).code == 2);
}

TEST_CASE("--fail-fast ends the other runs after the first failure, and starts no more") {
  const Arms arms("{ count = 3 }",
                  "[ $seed = 0 ] && { until_there started; exit 3; }\n: > started; sleep 1000",
                  "[machine]\nexclusive = \"devices\"\ndevices = 2\n");
  checked_output(arms.run({"--fail-fast"}), 1, "a run has failed: ending the other runs");
  CHECK(arms.states() == Texts{"0 failed", "1 interrupted", "2 planned"});
  CHECK(ranks_below(arms.scratch().path()).empty());
}

TEST_CASE("runs from other circumstances are trained again, unless --reuse accepts their metrics") {
  const Arms arms("{ count = 2 }", "epoch 1\nfinish");
  REQUIRE(arms.run({}).code == 0);
  const Texts elsewhere{"--set", "threads=2"};  // not in the run key, but in the circumstances
  auto reusing = elsewhere;
  reusing.emplace_back("--reuse");
  CHECK(contains(arms.run(reusing).out, "0 runs finished, 2 were finished before"));
  const auto compared = run_trainyard(arms.scratch().path(), {"status", "--runs"});
  CHECK(contains(compared.out, "finished"));
  CHECK(contains(arms.run(elsewhere).out, "2 runs finished, 0 were finished before"));
}

TEST_CASE("check, plan and run refuse more threads per rank than cores, and name both remedies") {
  const Arms arms("{ count = 2 }", "epoch 1\nfinish");
  for (const char* verb : {"check", "plan", "run"}) {
    CAPTURE(verb);
    const auto at = [&](const Texts& threads) {
      Texts arguments{verb, "arms.toml"};
      arguments.insert(arguments.end(), threads.begin(), threads.end());
      return run_trainyard(arms.scratch().path(), arguments);
    };
    const auto many =
        checked_error(at({"--set", "threads=1024"}), 2, "threads = 1024, but this process may use only ");
    CHECK(contains(many.err, "lower threads to at most "));
    CHECK(
        contains(many.err, ", or train with more cores: another machine, or a wider CPU affinity or quota"));
    CHECK_FALSE(contains(at({"--set", "threads=1"}).err, "threads"));
  }
  std::string file = tests::read_text(arms.scratch().path() / "arms.toml");
  file.insert(file.find("[matrix]") + 9, "threads = [1, 1024]\n");
  arms.scratch().write("study.toml", file);
  checked_error(run_trainyard(arms.scratch().path(), {"check", "study.toml"}), 2, "study.toml:3:15: ");
  CHECK(run_trainyard(arms.scratch().path(), {"check", "study.toml", "--where", "threads=1"}).code == 0);
}

TEST_CASE("a sweep whose programs record no epoch has failed, and explains why there is no report") {
  const Arms arms("[1]", "finish");
  const auto output = run_trainyard(arms.scratch().path(), {"run", "arms.toml"});
  CHECK_MESSAGE(output.code == 1, output.err);
  CHECK(contains(output.out + output.err, "its records lack epoch 1 of 1 (rank-0.records.jsonl:1)"));
  CHECK_MESSAGE(contains(output.out, "no report: no run has finished"), (output.out + output.err));
}
