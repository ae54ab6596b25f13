// Reports on programs that state few terms, fail, or cannot be timed: on the terminal, on the page and in
// files.
#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

std::size_t times_in(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Arms compared with `first`: `quiet` states nothing, `failing` always fails, and `crowded` has four ranks on
// two devices.
constexpr const char* arms_file = R"(name = "arms"
[matrix]
model = ["mlp"]
strategy = ["first", "quiet", "failing", "crowded"]
seed = { count = 3 }
[defaults]
dataset = "synthetic-digits"
epochs = 3
[machine]
devices = 2
[compare]
baseline = "first"
differs = ["samples"]           # each of the four ranks records all of them
[strategy.first]
command = ["/bin/sh", "arm.sh", "{seed}"]
[strategy.quiet]
command = ["/bin/sh", "arm.sh", "{seed}", "quiet"]
[strategy.failing]
command = ["false"]
[strategy.crowded]
command = ["/bin/sh", "arm.sh", "{seed}", "crowded"]
replicas = 4
)";

// One run of the sweep.
struct Sweep {
  Scratch scratch;
  Output run;
  Sweep() {
    scratch.write("arm.sh", shell_arm("record start '\"pid\":1'; epoch 1; epoch 2; epoch 3; finish"));
    scratch.write("arms.toml", arms_file);
    run = at({"run", "arms.toml"});
  }
  Output at(const std::vector<std::string>& arguments) const { return scratch.at(arguments); }
  std::string file(const std::string& name) const { return tests::read_text(scratch.path() / name); }
};

}  // namespace

TEST_CASE("programs that state nothing are not called fair, and missing terms are listed once") {
  const Sweep sweep;
  CHECK_MESSAGE(sweep.run.code == 1, sweep.run.err);  // the arm `failing`
  const std::string page = sweep.file("yard/reports/arms/index.html");
  REQUIRE(sweep.at({"report", "arms", "--format", "markdown,latex", "--out", "files"}).code == 0);
  const std::string markdown = sweep.file("files/report.md");
  for (const std::string* text : {&page, &markdown}) {
    for (const char* said : {"Initial weights: not stated by crowded, first, quiet.",
                             "Data order: not stated by crowded, first, quiet.",
                             "Global batch: not stated by crowded, first, quiet.",
                             "LibTorch: not stated by crowded, first, quiet."})
      CHECK_MESSAGE(contains(*text, said), said);
    for (const char* claim : {"Global batch: the same", "Data order: the same", "gets 1/N",
                              "Initial weights: the same", "LibTorch: 2"})
      CHECK_MESSAGE(!contains(*text, claim), claim);
  }

  // Equal warnings are one line.
  CHECK(times_in("warning: Failed and left out: ", sweep.run.out) == 1);
  CHECK(contains(sweep.run.out, "exit code 1: 3 runs, for example MLP failing seed 0."));
  CHECK(times_in("NOT VERIFIED", sweep.run.out) == 1);
  CHECK(times_in("are constant", sweep.run.out) == 1);

  const Output compared = sweep.at({"compare"});
  CHECK(contains(compared.out, "crowded: four ranks on two devices"));
  CHECK(contains(compared.out, "NO DATA: all three runs of failing failed [MLP failing: "));
  CHECK(times_in("NOT VERIFIED", compared.out) == 1);

  const std::string latex = sweep.file("files/tables/effects.tex");
  for (const std::string* text : {&markdown, &latex}) {
    CHECK(contains(*text, "NO DATA: all three runs of failing failed"));
  }
  CHECK(times_in("\\label{", latex) == 1);
  CHECK(contains(page, "four ranks on two devices"));
}

TEST_CASE("in a joint report, a comparison of one file does not include runs of another") {
  const Scratch scratch;
  scratch.write("arm.sh", shell_arm("epoch 1; finish"));
  const std::string arm = "command = [\"/bin/sh\", \"arm.sh\", \"{seed}\", \"";
  scratch.write(
      "one.toml",
      "name = \"one\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"a\", \"b\"]\nseed = { count = 3 }\n"
      "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n[compare]\nbaseline = \"a\"\n"
      "[strategy.a]\n" +
          arm + "a\"]\n[strategy.b]\n" + arm + "b\"]\n");
  scratch.write("two.toml",
                "name = \"two\"\n[matrix]\nmodel = [\"cnn\"]\nstrategy = [\"a\"]\nbatch = [32, 64]\n"
                "seed = { count = 3 }\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n[compare]\n"
                "axis = \"batch\"\nbaseline = 32\n[strategy.a]\n" +
                    arm + "a\"]\n");
  for (const char* file : {"one.toml", "two.toml"}) {
    const Output run = scratch.at({"run", file, "--no-report"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
  }
  const Output report = scratch.at({"report", "one", "two", "--format", "csv", "--out", "joint"});
  REQUIRE_MESSAGE(report.code == 0, report.err);
  const std::string verdicts = tests::read_text(scratch.path() / "joint/tables/verdicts.csv");
  CHECK(contains(verdicts, "strategy,a,"));
  CHECK(contains(verdicts, "batch,32,"));
  for (std::size_t begin = 0; begin < verdicts.size();) {
    const std::string line = verdicts.substr(begin, verdicts.find('\n', begin) - begin);
    CHECK_FALSE_MESSAGE((line.starts_with("strategy,") && contains(line, "CNN")), line);
    CHECK_FALSE_MESSAGE((line.starts_with("batch,") && contains(line, "MLP")), line);
    begin += line.size() + 1;
  }
}

TEST_CASE("two experiments on one model keep their comparisons in a joint report, and no file has cut text") {
  const Scratch scratch;
  scratch.write("arm.sh", shell_arm("epoch 1; finish"));
  const std::string arm = "command = [\"/bin/sh\", \"arm.sh\", \"{seed}\", \"";
  const auto file = [&](const std::string& name, const std::string& more) {
    return "name = \"" + name +
           "\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"a\", \"b\"]\nseed = { count = 3 }\n"
           "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n" +
           more + "[compare]\nbaseline = \"a\"\n[strategy.a]\n" + arm + "a\"]\n[strategy.b]\n" + arm +
           "b\"]\n";
  };
  const std::string second = "a second experiment with a name that is longer than any column";
  scratch.write("one.toml", file("one", "batch = 64\n") + "[expect.mlp]\ntrain_loss = { at_most = 0.0 }\n");
  scratch.write("two.toml", file(second, "batch = 32\nlearning_rate = 0.02\nmomentum = 0.5\n"));
  for (const char* name : {"one.toml", "two.toml"}) scratch.at({"run", name, "--no-report"});
  const Output report =
      scratch.at({"report", "one", second, "--format", "html,svg,csv,markdown,latex", "--out", "joint"});
  CHECK(contains(report.out, "one: verdicts against a\n"));
  CHECK(contains(report.out, second + ": verdicts against a\n"));
  CHECK(times_in("missed: ", report.err) == 6);  // the runs of "one" only
  const std::string verdicts = tests::read_text(scratch.path() / "joint/tables/verdicts.csv");
  CHECK(contains(verdicts, "\"MLP, one\",b,"));
  CHECK(contains(verdicts, "\"MLP, " + second + "\",b,"));
  CHECK_FALSE(contains(verdicts, "momentum"));
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path() / "joint")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".html") continue;  // its glyphs have dots
    ++files;
    CHECK_MESSAGE(!contains(tests::read_text(entry.path()), "…"), entry.path().string());
  }
  CHECK(files > 10);
}
