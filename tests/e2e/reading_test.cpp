// Output of a sweep over two learning rates. In pipes and files no text is cut. A terminal of 80 columns gets
// no wider line. Every table of runs has a column for the axis.
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"
#include "tests/support/terminal.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

constexpr const char* file = R"(name = "rates"
[matrix]
model = ["conv-autoencoder"]
strategy = ["base", "mine"]
learning_rate = [0.1, 0.05]
seed = [0, 1, 2]
[defaults]
dataset = "synthetic-digits"
epochs = 1
[strategy.base]
command = ["/bin/sh", "arm.sh", "{seed}", "base"]
[strategy.mine]
command = ["/bin/sh", "arm.sh", "{seed}", "mine"]
[compare]
baseline = "base"
)";

struct Sweep {
  Scratch scratch;
  Output run;
  Sweep() {
    scratch.write("arm.sh", shell_arm("epoch 1; finish"));
    scratch.write("rates.toml", file);
    run = at({"run", "rates.toml"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
  }
  Output at(const std::vector<std::string>& arguments) const { return scratch.at(arguments); }
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("in a pipe no label is cut, and every table distinguishes two learning rates") {
  const Sweep sweep;
  for (const Output& said : {sweep.run, sweep.at({"report"}), sweep.at({"compare"})}) {
    REQUIRE_MESSAGE(said.code == 0, said.err);
    CHECK_MESSAGE(contains(said.out, "ConvAutoencoder, learning_rate 0.1 "), said.out);
    CHECK_MESSAGE(contains(said.out, "ConvAutoencoder, learning_rate 0.05 "), said.out);
    const std::size_t verdicts = said.out.find("verdict");  // progress lines before the table have dots
    REQUIRE(verdicts != std::string::npos);
    CHECK_MESSAGE(!contains(said.out.substr(verdicts), "…"), said.out);
  }
  const Output plan = sweep.at({"plan", "rates.toml"});
  CHECK_MESSAGE(contains(plan.out, "conv-autoencoder, learning_rate 0.05 "), plan.out);
  const Output part = sweep.at({"plan", "rates.toml", "--where", "learning_rate=0.05"});
  CHECK_MESSAGE(contains(part.out, "\nconv-autoencoder  mine"), part.out);  // one cell needs no label
}

TEST_CASE("every export and table of runs has a column for each varied axis") {
  const Sweep sweep;
  for (const char* what : {"epochs", "ranks", "final", "runs", "times"}) {
    const Output said = sweep.at({"export", what});
    REQUIRE_MESSAGE(said.code == 0, said.err);
    CHECK_MESSAGE(contains(first_line(said.out) + ",", ",learning_rate,"), what);
  }
  const Output sql =
      sweep.at({"sql", "SELECT learning_rate, variant, COUNT(*) AS n FROM final_metrics GROUP BY 1, 2",
                "--format", "json"});
  REQUIRE_MESSAGE(sql.code == 0, sql.err);
  CHECK(nlohmann::json::parse(sql.out) ==
        nlohmann::json::parse(R"([{"learning_rate": 0.05, "variant": "learning_rate 0.05", "n": 6},
                                  {"learning_rate": 0.1, "variant": "learning_rate 0.1", "n": 6}])"));
  REQUIRE(sweep.at({"report", "--format", "html,csv", "--out", "out"}).code == 0);
  CHECK(
      first_line(tests::read_text(sweep.scratch.path() / "out/tables/runs.csv")).ends_with(",learning_rate"));
  CHECK(contains(tests::read_text(sweep.scratch.path() / "out/index.html"), ">learning_rate</button>"));
  CHECK(sweep.at({"db", "check"}).code == 0);
  REQUIRE(sweep.at({"db", "rebuild"}).code == 0);
  CHECK(contains(first_line(sweep.at({"export", "final"}).out) + ",", ",learning_rate,"));
}

TEST_CASE("on a terminal of 80 columns compare, plan and report have no wider line") {
  if (!has_terminals()) return;
  const Sweep sweep;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"compare"}, {"plan", "rates.toml"}, {"report"}}) {
    Terminal terminal(sweep.scratch.path(), arguments);
    CHECK(terminal.wait() == 0);
    CHECK(contains(terminal.output(), "learning_rate"));
    std::istringstream lines(terminal.output());
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with("\r")) line.pop_back();
      if (contains(line, "yard")) continue;  // this line has a folder's path
      CHECK_MESSAGE(trainyard::columns(line) <= 80, line);
    }
  }
}
