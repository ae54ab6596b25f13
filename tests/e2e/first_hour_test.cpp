// A new user's first hour, with the real programs.
#include <cstdlib>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/needed_programs.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

nlohmann::json query(const Scratch& scratch, const std::string& sql) {
  const auto answer = scratch.at({"sql", sql, "--format", "json"});
  REQUIRE_MESSAGE(answer.code == 0, answer.err);
  return nlohmann::json::parse(answer.out);
}

}  // namespace

TEST_CASE("a new file is checked, planned, trained, reported, and not trained twice") {
  const Scratch scratch;
  REQUIRE(scratch.at({"new", "first.toml"}).code == 0);
  CHECK(scratch.at({"new", "first.toml"}).code == 2);  // an existing file is not overwritten
  CHECK(contains(scratch.at({"check", "first.toml"}).out, "first.toml: ok"));

  const std::vector<std::string> small = {"first.toml", "--set",  "epochs=2", "--set",    "train_samples=400",
                                          "--where",    "seed=0", "--where",  "model=mlp"};
  auto command = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    return scratch.at(arguments);
  };
  const auto planned = checked_output(command({"plan"}), 0, "2 to run");
  CHECK(contains(planned.out, "expected time unknown"));

  const auto first = command({"run"});
  REQUIRE_MESSAGE(first.code == 0, first.err);
  CHECK(contains(first.out, "2 runs finished, 0 were finished before, 0 failed"));
  const auto page = scratch.path() / "yard/reports/first-try/index.html";  // --set makes other runs
  CHECK(std::filesystem::file_size(page) > 10'000);

  CHECK(contains(command({"run"}).out, "0 runs finished, 2 were finished before, 0 failed"));
  CHECK(contains(command({"plan"}).out, "0 to run"));
  CHECK(query(scratch, "SELECT count(*) AS n FROM run_summary WHERE status = 'finished'")[0]["n"] == 2);

  checked_output(scratch.at({"show", "last"}), 0, "by hand:");
  CHECK(scratch.at({"status"}).code == 0);
  CHECK(scratch.at({"report", "--out", "again"}).code == 0);
  const bool same = tests::read_text(page) == tests::read_text(scratch.path() / "again/index.html");
  CHECK_MESSAGE(same, "from the database alone, the same bytes");
}

TEST_CASE("after a yard was moved, `show` prints the current paths, quoted for a shell") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(1, R"("single")", 1));
  REQUIRE(scratch.at({"run", "small.toml", "--no-report"}).code == 0);
  std::filesystem::rename(scratch.path() / "yard", scratch.path() / "the yard's $HOME");
  const auto shown = scratch.at({"show", "last", "--yard", "the yard's $HOME"}).out;
  CHECK_FALSE(contains(shown, scratch.path().string() + "/yard/"));
  const std::string title = "by hand: ";
  const auto begin = shown.find(title);
  REQUIRE(begin != std::string::npos);
  const auto command = shown.substr(begin + title.size(), shown.find('\n', begin) - begin - title.size());
  const auto shell = "cd '" + scratch.path().string() + "' && " + command + " > said 2>&1";
  CHECK_MESSAGE(std::system(shell.c_str()) == 0, command);
  CHECK(std::filesystem::exists(scratch.path() / "by-hand/rank-0.records.jsonl"));
}

TEST_CASE("report writes every format, with published numbers, and for a part of the runs") {
  const Scratch scratch;
  scratch.write("p.toml",
                "[paper.mlp]\nepochs = 2\nsingle = { train_accuracy = [0.5, 0.75], train_seconds = 24 }\n"
                "[paper.verdict]\ntime = { improves = [\"mlp\"] }\n");
  std::string file = sweep_file(2);
  file.insert(file.find("[matrix]"), "published = \"p.toml\"\n");
  scratch.write("small.toml", file);
  REQUIRE(scratch.at({"run", "small.toml", "--no-report"}).code == 0);
  const auto made = scratch.at({"report", "--format", "html,pdf,svg,png,latex,markdown,csv", "--out", "all"});
  CHECK_MESSAGE(made.code == 0, made.err);
  const auto folder = scratch.path() / "all";
  for (const char* name :
       {"index.html", "report.md", "tables/verdicts.tex", "tables/effects.tex",
        "tables/verdicts-two-column.tex", "tables/results.tex", "tables/verdicts.csv", "tables/runs.csv",
        "tables/results.csv", "figures/mlp-train-accuracy.pdf", "figures/speed-up.svg",
        "figures/efficiency.png", "figures/mlp-validation-loss-over-time.csv", "figures/time-breakdown.csv"})
    CHECK_MESSAGE(std::filesystem::exists(folder / name), name);
  // The answer is on the first screen of the page, and first in the Markdown report and on the terminal.
  const std::string top = tests::read_text(folder / "index.html");
  const std::string opened = "<div class=\"answer\"><p>";
  const std::size_t answer = top.find(opened);
  REQUIRE(answer != std::string::npos);
  const std::string words = top.substr(answer + opened.size(), 20);
  CHECK(answer < top.find("In each cell: validation accuracy (margin"));
  CHECK(contains(top, "<dt>Published study</dt><dd>paper. Training time: IMPROVES for MLP."));
  CHECK(contains(top, "<dt>Machine</dt>"));
  for (const char* recorded :
       {"<dt>Cores and memory</dt><dd>", "<dt>System</dt><dd>", "<dt>Parameters</dt><dd>MLP ",
        "<dt>Training samples</dt><dd>synthetic-digits: "})
    CHECK_MESSAGE(contains(top, recorded), recorded);
  CHECK_MESSAGE(made.out.starts_with(words), made.out);
  const std::string compared = scratch.at({"compare"}).out;
  CHECK_MESSAGE(compared.starts_with(words), compared);
  CHECK_MESSAGE(contains(compared, "\nMachine: "), compared);
  CHECK(contains(compared, ". Trained on the CPU. "));
  if (const std::string python = tests::python_with_pandas(TRAINYARD_SOURCE); !python.empty()) {
    REQUIRE(scratch.at({"export", "final", "--out", "final.csv"}).code == 0);
    const std::string script = TRAINYARD_SOURCE "/tests/support/pandas_results.py";
    CHECK(std::system(("cd " + scratch.path().string() + " && " + python + " " + script +
                       " all/tables/results.csv final.csv")
                          .c_str()) == 0);
  }
  const std::string drawn = tests::read_text(folder / "figures/mlp-train-accuracy.svg");
  CHECK(contains(drawn, "published single"));
  CHECK_FALSE(contains(drawn, "ddp rank 1"));
  REQUIRE(scratch.at({"report", "--format", "svg", "--ranks", "--out", "ranks"}).code == 0);
  CHECK(contains(tests::read_text(scratch.path() / "ranks/figures/mlp-train-accuracy.svg"), "ddp rank 1"));
  // `run` stored the data profile: 500 training samples of ten classes, one channel.
  const auto profile =
      query(scratch,
            "SELECT json_extract(extra, '$.data_profiles[0].classes.train') AS classes, "
            "json_array_length(extra, '$.data_profiles[0].channels') AS channels FROM journal");
  int samples = 0;
  for (const int count : nlohmann::json::parse(profile[0]["classes"].get<std::string>())) samples += count;
  CHECK(samples == 500);
  CHECK(profile[0]["channels"] == 1);

  const auto part = scratch.at({"report", "--where", "seed=1", "--out", "part"});
  CHECK_MESSAGE(part.code == 0, part.err);
  CHECK(contains(tests::read_text(scratch.path() / "part/index.html"),
                 "This report includes only a part of the runs (seed=1)"));
  checked_error(scratch.at({"report", "--where", "sed=1"}), 2, "did you mean \"seed\"");
  CHECK(scratch.at({"report", "--since", "2999-01-01"}).code == 2);
  CHECK(scratch.at({"report", "--format", "pfd"}).code == 2);
}

TEST_CASE("sql prints four formats and refuses to write") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(1, R"("single")", 1));
  REQUIRE(scratch.at({"run", "small.toml", "--no-report"}).code == 0);
  const auto ask = [&](const std::string& sql, const std::string& format) {
    return scratch.at({"sql", sql, "--format", format});
  };
  const std::string statement = "SELECT model, seed, '=1' AS formula FROM run_summary";
  CHECK(ask(statement, "table").out == "model  seed  formula\nmlp       0  =1\n");
  CHECK(ask(statement, "csv").out == "model,seed,formula\nmlp,0,'=1\n");
  CHECK(ask(statement, "markdown").out == "| model | seed | formula |\n|---|---:|---|\n| mlp | 0 | =1 |\n");
  CHECK(nlohmann::json::parse(ask(statement, "json").out) ==
        nlohmann::json::parse(R"([{"model": "mlp", "seed": 0, "formula": "=1"}])"));
  for (const std::string writing :
       {"DELETE FROM run", "DROP TABLE run", "ATTACH 'x.db' AS x", "SELECT 1; DELETE FROM run"})
    CHECK_MESSAGE(ask(writing, "table").code == 2, writing);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "x.db"));
}

TEST_CASE("the drawn digits are worth learning: a linear model stays 5 points below the MLP") {
  const Scratch scratch;
  scratch.write("depth.toml", R"(name = "depth"
[matrix]
model = ["mlp"]
hidden = [[250, 100], []]
seed = { count = 2 }
[defaults]
dataset = "synthetic-digits"
train_samples = 2000
)");
  const auto output = scratch.at({"run", "depth.toml"});
  REQUIRE_MESSAGE(output.code == 0, output.err);
  const auto accuracy =
      query(scratch,
            "SELECT 100 * avg(f.test_accuracy) AS percent FROM final_metrics f JOIN run_axis a "
            "ON a.run_key = f.run_key AND a.name = 'hidden' GROUP BY a.value ORDER BY percent");
  REQUIRE(accuracy.size() == 2);
  CHECK(accuracy[1]["percent"].get<double>() > 85);
  CHECK(accuracy[1]["percent"].get<double>() - accuracy[0]["percent"].get<double>() > 5);
}

TEST_CASE("installed programs train a sweep and make its report") {
  const Scratch scratch;
  const auto prefix = scratch.path() / "prefix";
  const std::string install = "cmake --install " TRAINYARD_BUILD " --prefix " + prefix.string() + " > " +
                              (scratch.path() / "install.log").string();
  REQUIRE(std::system(install.c_str()) == 0);
  const auto program = (prefix / "bin/trainyard").string();
  CHECK(scratch.at({"--version"}, {}, program).out.rfind("trainyard 0.", 0) == 0);
  scratch.write("small.toml", sweep_file(1, R"("single", "ddp")", 1));
  const auto output = scratch.at({"run", "small.toml"}, {}, program);
  CHECK_MESSAGE(output.code == 0, output.err);
  CHECK(std::filesystem::exists(scratch.path() / "yard/reports/small/index.html"));
  CHECK(std::filesystem::exists(prefix / "share/trainyard/experiments/demo.toml"));
}
