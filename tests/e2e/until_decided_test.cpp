// Seeds until each cell is decided: which runs are trained, what the verdicts say, and that a killed sweep goes on.
#include <csignal>
#include <filesystem>
#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// Differences of the logarithm of the loss, as multiples of half the margin ln 1.02 of losses, from seed 0 on.
// - near: one cell of the design of the procedure, with zeros behind it. NO CHANGE after five pairs.
// - far: ten margins worse. DETERIORATES after four, the fewest.
// - edge: its mean is on the margin, so no number of seeds decides it.
constexpr const char* script = R"sh(case $arm in
  near) d=$(echo .31 -.22 .14 .05 -.17 0 0 0 0 0 0 0 | cut -d' ' -f$((seed + 1)));;
  far) d=$(awk "BEGIN { print -5 - 0.1 * ($seed % 3) }");;
  edge) d=$(awk "BEGIN { print -0.5 + ($seed % 2 ? 0.15 : -0.15) }");;
  *) d=0;;
esac
sum=$(awk "BEGIN { printf \"%.12f\", 10 * exp(-($d) * 2 * log(1.02)) }")
[ "$arm $seed" = "$WAITS" ] && touch waits && until_there mended
metric() { echo "{\"phase\":\"$1\",\"name\":\"loss\",\"sum\":$sum,\"weight\":10}"; }
record epoch "\"epoch\":1,\"train_seconds\":0.001,\"validation_seconds\":0,\"metrics\":[$(metric train),$(metric validation)]"
finish
)sh";

struct Yard : Scratch {
  explicit Yard(const std::string& seeds) {
    std::string file =
        "name = \"arms\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"base\", \"near\", \"far\", \"edge\"]\n" +
        (seeds.empty() ? std::string() : "seed = " + seeds + "\n") +
        "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n[compare]\nbaseline = \"base\"\n";
    for (const char* arm : {"base", "near", "far", "edge"}) {
      write(arm + std::string(".sh"), "arm=" + std::string(arm) + "\n" + shell_arm(script));
      file += "[strategy." + std::string(arm) + "]\ncommand = [\"/bin/sh\", \"" + arm +
              ".sh\", \"{seed}\"]\nfiles = [\"" + arm + ".sh\"]\n";
    }
    write("arms.toml", file);
  }

  std::map<std::string, nlohmann::json> loss_verdicts() const {
    const Output output = at({"compare", "--format", "json"});
    REQUIRE_MESSAGE(output.code == 0, output.err);
    std::map<std::string, nlohmann::json> found;
    const auto said = nlohmann::json::parse(output.out);
    for (const auto& comparison : said.at("comparisons"))
      for (const auto& cell : comparison.at("cells"))
        for (const auto& one : cell.at("verdicts"))
          if (one.at("metric") == "validation-loss") found[one.at("arm")] = one;
    return found;
  }

  std::string finished_runs() const {
    return at({"sql",
               "SELECT strategy, COUNT(*) FROM run_summary WHERE status = 'finished' GROUP BY 1 ORDER BY 1",
               "--format", "csv"})
        .out;
  }

  void check_words() const {
    const auto verdicts = loss_verdicts();
    CHECK(verdicts.at("near").at("verdict") == "NO CHANGE");
    CHECK(verdicts.at("near").at("n") == 5);
    // of the simulation in Python that the procedure was designed with
    CHECK(verdicts.at("near").at("p").get<double>() == doctest::Approx(0.01739556183075747).epsilon(1e-6));
    CHECK(contains(verdicts.at("near").at("notes").dump(), "decided after 5 of at most 12 pairs"));
    CHECK(verdicts.at("far").at("verdict") == "DETERIORATES");
    CHECK(verdicts.at("far").at("n") == 4);
    CHECK(verdicts.at("edge").at("verdict") == "INCONCLUSIVE");
    CHECK(contains(verdicts.at("edge").at("reason").dump(),
                   "of at most 12 pairs: the others would decide with a probability "
                   "below 5 %; too few seeds"));
  }
};

}  // namespace

TEST_CASE("cells get seeds until they are decided, and the words are those of the pairs in order") {
  const Yard yard("{ min = 4, max = 12 }");
  const std::string planned = yard.at({"plan", "arms.toml"}).out;
  CHECK(contains(planned, "mlp near seed 3 "));
  CHECK_FALSE(contains(planned, "mlp near seed 4 "));
  CHECK(contains(planned, "mlp near, 8 further seeds "));
  CHECK(contains(planned, " if needed"));
  CHECK(contains(planned, "arms: 48 runs, 0 finished, at most 48 to run"));
  const Output first = yard.at({"run", "arms.toml"});
  REQUIRE_MESSAGE(first.code == 0, (first.out + first.err));
  CHECK(contains(first.out, "of 3 cells need no more seeds"));
  CHECK(contains(first.out, " not needed\n"));
  yard.check_words();
  const std::string runs = yard.finished_runs();
  CHECK_FALSE(contains(runs, ",12"));                                 // no cell has used all seeds
  CHECK((contains(runs, "near,5\n") || contains(runs, "near,6\n")));  // two may train side by side
  CHECK(contains(yard.at({"plan", "arms.toml"}).out, "not needed"));
  const Output again = yard.at({"run", "arms.toml"});
  CHECK(contains(again.out, "0 runs finished"));
  CHECK(yard.finished_runs() == runs);
}

TEST_CASE("a sweep that is killed while it decides goes on to the same words") {
  const Yard yard("{ min = 4, max = 12 }");
  {
    Trainyard running(yard.path(), {"run", "arms.toml", "--no-report"}, {{"WAITS", "near 4"}});
    REQUIRE(comes_true([&] { return std::filesystem::exists(yard.path() / "waits"); }));
    running.signal(SIGKILL);
    running.wait();
    CHECK(comes_true([&] { return ranks_below(yard.path()).empty(); }));
  }
  yard.write("mended", "");
  const Output rest = yard.at({"run", "arms.toml", "--no-report"});
  REQUIRE_MESSAGE(rest.code == 0, (rest.out + rest.err));
  yard.check_words();
}

TEST_CASE("--until-decided replaces the seeds of the file, and resume repeats it") {
  const Yard yard("");
  CHECK(yard.at({"run", "arms.toml", "--no-report", "--max-seeds", "12"}).code == 0);
  yard.check_words();
  CHECK(contains(yard.at({"resume", "--no-report"}).out, "0 runs finished"));
  CHECK(contains(yard.at({"plan", "arms.toml", "--until-decided"}).out, "mlp far, 8 further seeds"));
  checked_error(yard.at({"run", "arms.toml", "--max-seeds", "2"}), 2, "--max-seeds");
}

TEST_CASE(
    "a range of seeds with a wrong limit, or for runs that are not paired, is an error with its place") {
  const auto error_of = [](const std::string& seeds, const std::string& compare = "") {
    Scratch scratch;
    scratch.write("x.toml",
                  "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"ddp\"]\nseed = " +
                      seeds + "\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n" + compare);
    const Output output = scratch.at({"check", "x.toml"});
    CHECK(output.code == 2);
    return output.err;
  };
  CHECK(contains(error_of("{ min = 8, max = 5 }"), "x.toml:5:8: error: min = 8 is above max = 5"));
  CHECK(contains(error_of("{ max = 1001 }"), "x.toml:5:16: error: max must be an integer in [3, 1000]"));
  CHECK(contains(error_of("{ min = 2, max = 5 }"), "min must be an integer in [3, 1000]"));
  CHECK(contains(error_of("{ count = 3, max = 5 }"), "seed has count and a range"));
  CHECK(contains(error_of("{ max = 5 }", "[compare]\npair = []\n"), "must be paired by their seed"));
}
