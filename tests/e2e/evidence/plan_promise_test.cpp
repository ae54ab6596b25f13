// What was done to the results after they were seen is said beside the word, in every output.
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// DrawnArms without a true effect: twelve fixed draws each. The first four seeds look good for "mine". With the file
// "lucky" an arm is one point better.
constexpr const char* drawn_accuracies = R"sh(
case $2 in base) set -- 500 503 497 501 499 502 498 500 504 496 500 501;;
           *) set -- 526 525 519 530 479 480 482 481 489 479 484 478;; esac
shift $seed; right=$1
[ ! -e lucky ] || right=$((right + 10))
loss() { printf '{"phase":"%s","name":"loss","sum":%s,"weight":1000}' $1 $2; }
correct() { printf '{"phase":"%s","name":"correct","sum":%s,"weight":1000}' $1 $2; }
record epoch "\"epoch\":1,\"train_seconds\":0.002,\"validation_seconds\":0.001,\"metrics\":[$(loss train 900),$(correct train 500),$(loss validation 950),$(correct validation $right)]"
finish
)sh";

struct DrawnArmsFile {
  std::string name = "arms";
  std::string arm = "mine";
  std::string baseline = "base";
  std::string more_arguments = "";
  std::string margins = "";
};

std::string arms_text(const DrawnArmsFile& file) {
  return "name = \"" + file.name + "\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"base\", \"" + file.arm +
         R"("]
seed = { count = 12 }
[defaults]
dataset = "synthetic-digits"
epochs = 1
[strategy.base]
command = ["/bin/sh", "arm.sh", "{seed}", "base"]
)" + "[strategy." +
         file.arm + "]\ncommand = [\"/bin/sh\", \"arm.sh\", \"{seed}\", \"mine\"" + file.more_arguments +
         "]\n[compare]\nbaseline = \"" + file.baseline + "\"\n" + file.margins;
}

class DrawnArms {
 public:
  DrawnArms() {
    scratch_.write("arm.sh", shell_arm(drawn_accuracies));
    scratch_.write("arms.toml", arms_text({}));
    run("arms.toml");
  }

  const std::filesystem::path& folder() const { return scratch_.path(); }
  Output at(const std::vector<std::string>& arguments) const { return run_trainyard(folder(), arguments); }
  void run(const std::string& file) const {
    const Output output = at({"run", file, "--no-report"});
    REQUIRE_MESSAGE(output.code == 0, output.err);
  }
  const Scratch& scratch() const { return scratch_; }

  nlohmann::json accuracy() const {
    const Output output = at({"compare", "--format", "json"});
    REQUIRE_MESSAGE(output.code == 0, output.err);
    const auto all = nlohmann::json::parse(output.out);
    for (const auto& verdict : all.at("comparisons").at(0).at("cells").at(0).at("verdicts"))
      if (verdict.at("metric") == "validation-accuracy") return verdict;
    return {};
  }
  std::vector<std::string> marks() const {
    std::vector<std::string> marks;
    const nlohmann::json verdict = accuracy();
    for (const auto& caveat : verdict.at("caveats")) marks.push_back(caveat.at("mark"));
    return marks;
  }

  // The word of the validation accuracy, its mark and its caveat are in each output.
  void require_everywhere(const std::string& word, const std::string& mark, const std::string& text) const {
    CAPTURE(mark);
    const nlohmann::json verdict = accuracy();
    CHECK(verdict.at("verdict") == word);
    CHECK(marks() == std::vector{mark});
    CHECK(verdict.at("caveats").at(0).at("text").get<std::string>().starts_with(text));
    const std::string table = at({"compare"}).out;
    CHECK_MESSAGE(contains(table, "validation accuracy  " + word + ", " + mark), table);
    CHECK_MESSAGE(contains(table, mark + ": " + text), table);
    CHECK_MESSAGE(contains(table, "Weakened: "), table);
    const std::string csv = at({"compare", "--format", "csv"}).out;
    CHECK_MESSAGE(contains(row_with(csv, "validation-accuracy"), mark + ": " + text), csv);
    CHECK_MESSAGE(contains(row_with(csv, "validation-accuracy"), "," + mark + ","), csv);
    const std::string latex = at({"compare", "--format", "latex"}).out;
    CHECK_MESSAGE(contains(row_with(latex, "Validation accuracy"), ", " + mark + " "), latex);
    CHECK_MESSAGE(contains(latex, mark + ": " + in_latex(text)), latex);
    const Output report = at({"report", "--format", "html,markdown,latex,csv", "--out", "out"});
    REQUIRE(report.code == 0);
    CHECK_MESSAGE(contains(report.out, "validation accuracy  " + word + ", " + mark), report.out);
    CHECK_MESSAGE(contains(report.out, "warning: " + mark + ": MLP mine: " + text), report.out);
    const auto in = [&](const std::string& file) { return tests::read_text(folder() / "out" / file); };
    CHECK(contains(in("index.html"), "<i>" + mark + "</i>"));
    CHECK(contains(in("index.html"), mark + ": " + text));
    for (const char* file :
         {"report.md", "tables/effects.tex"})  // the mark in the row, its text in a footnote
      CHECK(contains(row_with(in(file), "Validation accuracy"), ", " + mark + " "));
    CHECK(contains(in("report.md"), mark + ": " + text));
    CHECK(contains(in("tables/effects.tex"), mark + ": " + in_latex(text)));
    CHECK(contains(row_with(in("tables/verdicts.csv"), "validation-accuracy"), mark + ": " + text));
  }

 private:
  static std::string in_latex(std::string text) {
    for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  }

  static std::string row_with(const std::string& text, const std::string& what) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (contains(line, what)) return line;
    return "";
  }

  Scratch scratch_;
};

}  // namespace

TEST_CASE("removing the bad seeds makes the verdict INTERIM, and every output names them") {
  const DrawnArms arms;
  CHECK(arms.accuracy().at("verdict") == "INCONCLUSIVE");
  CHECK(arms.at({"compare", "--fail-on", "missing"}).code == 0);
  std::vector<std::string> rm{"rm"};
  for (int seed = 4; seed < 12; ++seed) {
    rm.emplace_back("--where");
    rm.push_back("seed=" + std::to_string(seed));
  }
  REQUIRE(arms.at(rm).code == 0);
  arms.require_everywhere("INTERIM", "REMOVED",
                          "8 of 12 planned pairs were removed: seeds 4, 5, 6, 7, 8, 9, 10, 11");
  checked_error(arms.at({"compare", "--fail-on", "missing"}), 3, "INTERIM, REMOVED");
  CHECK(contains(arms.at({"status"}).out, "arms: 16 removed results count as missing"));
  // A rebuilt database says the same, and so does a later plan of the other four seeds.
  REQUIRE(arms.at({"db", "rebuild"}).code == 0);
  CHECK(arms.marks() == std::vector<std::string>{"REMOVED"});
  CHECK(arms.at({"db", "check"}).code == 0);
  REQUIRE(arms.at({"run", "arms.toml", "--no-report", "--where", "seed=0", "--where", "seed=1", "--where",
                   "seed=2", "--where", "seed=3"})
              .code == 0);
  CHECK(arms.accuracy().at("verdict") == "INTERIM");
}

TEST_CASE("results that are trained again after rm are REPLACED in every output, and a gate finds them") {
  const DrawnArms arms;
  CHECK(arms.at({"compare", "--fail-on", "replaced"}).code == 0);
  arms.scratch().write("lucky", "");
  for (int round = 0; round < 2; ++round) {
    REQUIRE(arms.at({"rm", "--files", "--where", "strategy=mine"}).code == 0);
    arms.run("arms.toml");
  }
  // 12 draws of "mine" have the sum 5952 before, and 12 · 10 more after
  arms.require_everywhere("INCONCLUSIVE", "REPLACED",
                          "12 results of mine were replaced after being seen: mean before 49.6 %, mean after "
                          "50.6 % (seeds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)");
  checked_error(arms.at({"compare", "--fail-on", "replaced"}), 3,
                "MLP mine: INCONCLUSIVE, REPLACED, NOT VERIFIED (validation accuracy)");
  REQUIRE(arms.at({"db", "rebuild"}).code == 0);
  CHECK(arms.at({"compare", "--fail-on", "replaced"}).code == 3);
  CHECK(arms.at({"db", "check"}).code == 0);
}

TEST_CASE("a comparison that is planned after its results is EXPLORATORY, with the word of the first plan") {
  const DrawnArms arms;
  SUBCASE("under another experiment name, with other margins") {
    arms.scratch().write("later.toml",
                         arms_text({.name = "later", .margins = "margins = { accuracy_points = 5.0 }\n"}));
    arms.run("later.toml");
    arms.require_everywhere("NO CHANGE", "EXPLORATORY",
                            "these pairs had results before this comparison was planned: seeds 0, 1, 2");
    CHECK(contains(arms.accuracy().at("caveats").at(0).at("text").get<std::string>(),
                   "; experiment arms was planned first and says INCONCLUSIVE"));
    CHECK_FALSE(contains(arms.at({"compare", "--experiment", "arms"}).out, "EXPLORATORY"));
  }
  SUBCASE("under another name of the arm") {
    arms.scratch().write("arms.toml", arms_text({.arm = "theirs"}));
    arms.run("arms.toml");
    CHECK(arms.marks() == std::vector<std::string>{"EXPLORATORY"});
  }
  SUBCASE("in a [compare] that was added later") {
    arms.scratch().write("arms.toml", arms_text({.baseline = "mine"}));
    arms.run("arms.toml");
    CHECK(arms.marks() == std::vector<std::string>{"EXPLORATORY"});
  }
}

TEST_CASE("an arm that was changed under its name says which version it is") {
  const DrawnArms arms;
  for (const std::string more : {", \"again\"", ", \"once more\""}) {
    arms.scratch().write("arms.toml", arms_text({.more_arguments = more}));
    arms.run("arms.toml");
  }
  arms.require_everywhere("INCONCLUSIVE", "VERSIONS",
                          "third version of arm mine: two other versions had results before");
}

TEST_CASE("a quick try with --set has a name and a report of its own") {
  const DrawnArms arms;
  REQUIRE(arms.at({"report"}).code == 0);
  const auto page = arms.folder() / "yard/reports/arms/index.html";
  const std::string before = tests::read_text(page);
  checked_error(arms.at({"run", "arms.toml", "--set", "batch=64"}), 0,
                "note: --set changes runs, so this experiment and its report are called arms-try; --as NAME");
  CHECK(std::filesystem::exists(arms.folder() / "yard/reports/arms-try/index.html"));
  CHECK(tests::read_text(page) == before);
  // The runs of the file stay as they were: nothing of the try is among them.
  REQUIRE(arms.at({"run", "arms.toml", "--where", "strategy=mine"}).code == 0);
  CHECK(arms.marks().empty());
  CHECK(
      contains(arms.at({"run", "arms-try"}).out, "24 were finished before"));  // by name, with the same --set
  CHECK(arms.at({"run", "arms.toml", "--set", "batch=32", "--as", "small batch", "--no-report"}).code == 0);
  CHECK(contains(arms.at({"resume"}).out, "24 were finished before"));
  CHECK(contains(arms.at({"status"}).out, "small batch"));
  CHECK(contains(arms.at({"run", "arms.toml", "--set", "seed=1"}).out,
                 "2 were finished before"));  // no other run
  CHECK(arms.at({"check", "arms.toml", "--as", "a/b"}).code == 2);
}
