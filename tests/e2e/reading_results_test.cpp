// Finished sweeps on the command line: help, status, show, logs, sql, rm, and experiments by name.
#include <algorithm>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

using Texts = std::vector<std::string>;

const Texts verbs{"new",  "list",   "data",    "check",   "plan",   "run", "resume", "status", "show",
                  "logs", "report", "compare", "explain", "export", "sql", "rm",     "db",     "completion"};

Texts lines_of(const std::string& text) {
  std::istringstream in(text);
  Texts lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A yard with the finished experiment "arms" of two seeds. `more` is the body of the arm.
class Finished {
 public:
  explicit Finished(const std::string& more = "", const std::string& seeds = "{ count = 2 }")
      : scratch_(more + "\nepoch 1\nfinish", seeds) {}
  const Scratch& scratch() const { return scratch_; }
  Output at(const Texts& arguments) const { return run_trainyard(scratch_.path(), arguments); }
  Texts keys(const std::string& where = "1") const {
    const auto answer =
        at({"sql", "SELECT run_key FROM run_summary WHERE " + where + " ORDER BY seed", "--format", "json"});
    REQUIRE_MESSAGE(answer.code == 0, answer.err);
    Texts keys;
    for (const auto& row : nlohmann::json::parse(answer.out)) keys.push_back(row.at("run_key"));
    return keys;
  }

 private:
  FinishedArms scratch_;
};

}  // namespace

TEST_CASE("without arguments the help is printed, with one line per verb") {
  const Scratch scratch;
  const auto bare = scratch.at({});
  CHECK(bare.code == 0);
  CHECK(bare.err.empty());
  CHECK(bare.out == scratch.at({"--help"}).out);
  const Texts lines = lines_of(bare.out);
  for (const std::string& verb : verbs) {
    CAPTURE(verb);
    const auto begins = [&](const std::string& line) { return line.starts_with("  " + verb + " "); };
    const auto first = std::find_if(lines.begin(), lines.end(), begins);
    REQUIRE(first != lines.end());
    CHECK_FALSE((first + 1)->starts_with("            "));
  }
  for (const std::string& line : lines) CHECK_MESSAGE(line.size() <= 80, line);
  CHECK(lines.size() <= 45);
  checked_output(scratch.at({"db"}), 0, "  rebuild ");
}

TEST_CASE("the help of each verb ends with examples, in lines of at most 80 columns") {
  const Scratch scratch;
  for (const std::string& verb : verbs) {
    CAPTURE(verb);
    const auto help = scratch.at({verb, "--help"});
    CHECK(help.code == 0);
    CHECK(lines_of(help.out).back().starts_with("  trainyard " + verb));
    for (const std::string& line : lines_of(help.out)) CHECK_MESSAGE(columns(line) <= 80, line);
  }
  for (const std::string verb :
       {"data get", "data list", "data verify", "db check", "db backup", "db rebuild"}) {
    CAPTURE(verb);
    const auto help = scratch.at({verb.substr(0, verb.find(' ')), verb.substr(verb.find(' ') + 1), "--help"});
    CHECK(contains(help.out, "\n  trainyard " + verb));
  }
}

TEST_CASE("bash completes commands of commands, and options of each") {
  const Scratch scratch;
  const std::string script =
      "eval \"$(" TRAINYARD_PROGRAM
      " completion bash)\"\n"
      "complete_it() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _trainyard trainyard \"${@: -1}\"; "
      "echo \"${COMPREPLY[*]}\"; }\n"
      "complete_it trainyard re; complete_it trainyard db ''; complete_it trainyard data get mnist --f\n";
  const auto completed = run_trainyard(scratch.path(), {"-c", script}, {}, "/bin/bash");
  CHECK_MESSAGE(completed.out == "resume report replay\ncheck backup rebuild\n--from\n",
                (completed.out + completed.err));
}

TEST_CASE("list schema has bounds and choices of keys, and no other sections than the file") {
  const auto schema = nlohmann::json::parse(Scratch().at({"list", "schema"}).out);
  const auto& sections = schema.at("properties");
  const auto& defaults = sections.at("defaults").at("properties");
  CHECK(defaults.at("optimizer").at("enum") == nlohmann::json{"sgd", "adam", "adamw"});
  CHECK(defaults.at("epochs").at("minimum") == 1);
  CHECK_FALSE(defaults.contains("replicas"));
  CHECK(sections.at("strategy").at("additionalProperties").at("properties").contains("replicas"));
  CHECK(schema.at("additionalProperties") == false);
  for (const char* section :
       {"name", "data_seed", "data", "matrix", "defaults", "model", "strategy", "exclude", "include",
        "compare", "expect", "machine", "published", "dataset", "metric"})
    CHECK_MESSAGE(sections.contains(section), section);
  CHECK(sections.size() == 15);
}

TEST_CASE("an unknown key is refused, with the runs whose key or name is similar") {
  const Finished yard;
  const Texts keys = yard.keys();
  REQUIRE(keys.size() == 2);
  std::string wrong = keys[0].substr(0, 6);
  wrong[5] = wrong[5] == '0' ? '1' : '0';
  for (const std::string verb : {"show", "logs", "rm"}) {
    CAPTURE(verb);
    const auto by_key =
        checked_error(yard.at({verb, wrong}), 2, "\n  " + keys[0] + "  arms: mlp mine seed 0, finished");
    CHECK_FALSE(contains(by_key.err, keys[1]));
  }
  checked_error(yard.at({"show", "mlp seed 1"}), 2, keys[1] + "  arms: mlp mine seed 1, finished");
  const auto by_experiment = yard.at({"show", "arms"});
  CHECK(contains(by_experiment.err, "\"arms\" is an experiment, not a run"));
  CHECK(contains(by_experiment.err, "\nits runs:\n  " + keys[0]));
  const auto nothing = yard.at({"show", "zebra"});
  CHECK(nothing.code == 2);
  CHECK_FALSE(contains(nothing.err, "similar runs"));
}

TEST_CASE("without a font a report has no PNG, and --format png says what to install") {
  const Finished yard;
  yard.scratch().write("none.conf", "<fontconfig></fontconfig>");
  const std::map<std::string, std::string> no_font{
      {"FONTCONFIG_FILE", (yard.scratch().path() / "none.conf").string()}};
  for (const std::string folder : {"fonts", "none"}) {
    const auto written = run_trainyard(yard.scratch().path(), {"report", "--out", folder},
                                       folder == "none" ? no_font : std::map<std::string, std::string>{});
    REQUIRE_MESSAGE(written.code == 0, written.err);
    CHECK(std::filesystem::exists(yard.scratch().path() / folder / "index.html"));
    for (const auto& entry : std::filesystem::directory_iterator(yard.scratch().path() / folder / "figures"))
      CHECK((folder == "fonts" || entry.path().extension() != ".png"));
  }
  checked_error(run_trainyard(yard.scratch().path(), {"report", "--format", "png"}, no_font), 2,
                "no font was found; install the fonts DejaVu");
}

TEST_CASE("status --all lists the finished runs with their keys") {
  const Finished yard;
  const auto some = yard.at({"status"}).out;
  const auto all = yard.at({"status", "--all"});
  CHECK(all.code == 0);
  for (const std::string& key : yard.keys()) {
    CHECK_FALSE(contains(some, key));
    CHECK(contains(all.out, key + "  mlp    mine         0  finished") !=
          contains(all.out, key + "  mlp    mine         1  finished"));
  }
}

TEST_CASE("sql --schema prints the views with their columns, then the tables") {
  const Finished yard;
  const auto text = yard.at({"sql", "--schema"});
  REQUIRE_MESSAGE(text.code == 0, text.err);
  for (const std::string& line : lines_of(text.out)) CHECK_MESSAGE(line.size() <= 80, line);
  const auto view = text.out.find("\nfinal_metrics (view)\n  run_key, experiment, model, strategy, seed,");
  const auto table = text.out.find("\nrun (table)\n  run_key, model, dataset,");
  CHECK(view != std::string::npos);
  CHECK(table != std::string::npos);
  CHECK(text.out.rfind(" (view)") < text.out.find(" (table)"));
  const auto answer = nlohmann::json::parse(yard.at({"sql", "--schema", "--format", "json"}).out);
  CHECK(answer[0].at("kind") == "view");
  CHECK(answer[0].at("name") == "run_summary");
  CHECK(answer[0].at("column") == "run_key");
  CHECK(answer.back().at("kind") == "table");
  CHECK(contains(yard.at({"sql"}).err, "no SQL statement is given"));
  CHECK(yard.at({"sql", "SELECT 1", "--schema"}).code == 2);
}

TEST_CASE("logs of a run that printed nothing explains this, how the run ended and where its epochs are") {
  const Finished silent;
  const auto logs = silent.at({"logs", "last"});
  CHECK(logs.code == 0);
  CHECK(logs.out.empty());
  const std::string key = silent.keys("seed = 1").front();
  CHECK_MESSAGE(contains(logs.err, "note: rank 0 printed nothing in attempt 1, which finished"), logs.err);
  CHECK_MESSAGE(contains(logs.err, "`trainyard show " + key + "` has its epochs"), logs.err);
  const Finished talking("echo one line");
  const auto heard = talking.at({"logs", "last"});
  CHECK(heard.out == "one line\n");
  CHECK(heard.err.empty());
}

TEST_CASE("run takes an experiment by name, with its old file and the old or new options") {
  const Finished yard("", "{ count = 3 }");
  CHECK(contains(yard.at({"run", "arms.toml", "--no-report", "--where", "seed=1"}).out,
                 "1 was finished before"));
  std::filesystem::rename(yard.scratch().path() / "arms.toml", yard.scratch().path() / "moved.toml");
  checked_output(yard.at({"run", "arms", "--no-report"}), 0, "0 runs finished, 1 was finished before");
  const auto now = yard.at({"run", "arms", "--no-report", "--where", "seed=0,seed=2"});
  CHECK_MESSAGE(contains(now.out, "0 runs finished, 2 were finished before"), now.out);
  CHECK(contains(yard.at({"run", "arms", "--dry-run"}).out, "2 runs, 2 finished, 0 to run"));

  checked_error(yard.at({"run", "amrs"}), 2,
                "\"amrs\" is neither a file nor an experiment of this yard; did you mean \"arms\"?");
  yard.scratch().write("arms", "name = \"other\"\nnonsense\n");  // a file with that name takes precedence
  CHECK(contains(yard.at({"run", "arms"}).err, "arms:2:"));
  CHECK(contains(yard.at({"run", "missing.toml"}).err, "cannot be read"));
}

TEST_CASE("rm takes an experiment by name, and with --where removes only the matching runs") {
  const Finished yard("", "{ count = 4 }");
  checked_error(yard.at({"rm", "arms", "--where", "model=mlp,seed=9"}), 2,
                "--where seed: no run has seed = 9");
  checked_error(yard.at({"rm", "--where", "sead=1"}), 2,
                "no run has a value named \"sead\"; did you mean \"seed\"?");
  CHECK(yard.at({"rm"}).code == 2);
  CHECK(contains(yard.at({"rm", "amrs"}).err, "did you mean \"arms\"?"));
  CHECK(yard.keys().size() == 4);

  const std::string first = yard.keys("seed = 1").front();
  const auto listed = yard.at({"rm", "--where", "strategy=mine,seed=1", "--dry-run"});
  CHECK(contains(listed.out, "would remove " + first + " (1 attempt)\n1 run; nothing was removed\n"));
  CHECK(yard.keys().size() == 4);
  checked_output(yard.at({"rm", "arms", "--where", "model=mlp,strategy=mine,seed=1"}), 0,
                 "removed " + first + " (1 attempt)");
  CHECK(yard.keys("seed <> 1 AND status = 'finished'").size() == 3);
  CHECK(yard.keys("seed = 1 AND status = 'planned'") == std::vector{first});  // the run stays planned
  checked_output(yard.at({"rm", "arms", "--files"}), 0, "and its files");
  CHECK(yard.keys("status <> 'planned'").empty());
  CHECK(contains(yard.at({"rm", "arms"}).err, "none of these runs has been trained"));
  CHECK(contains(yard.at({"run", "arms", "--no-report"}).out, "4 runs finished, 0 were finished before"));
}

TEST_CASE("report writes figures of a given width, with captions as text files") {
  const Finished yard;
  const auto read = [&](const std::string& file) {
    return tests::read_text(yard.scratch().path() / "paper" / file);
  };
  const auto made = yard.at({"report", "--width", "7cm", "--font-size", "9", "--no-title", "--format",
                             "pdf,svg", "--out", "paper"});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  // 7 cm are 264.567 pixels.
  CHECK(contains(read("figures/mlp-train-seconds.svg"), "width=\"264.567\""));
  CHECK(read("figures/mlp-train-seconds.pdf").starts_with("%PDF-"));
  CHECK(contains(read("figures/mlp-train-seconds.txt"), "Training time"));
  const auto refused = [&](Texts arguments, const std::string& problem, const std::string& advice) {
    arguments.insert(arguments.begin(), {"report", "--out", "refused"});
    const auto answer = checked_error(yard.at(arguments), 2, problem);
    CHECK_MESSAGE(contains(answer.err, advice), answer.err);
  };
  refused({"--width", "7"}, "--width \"7\" is not a length", "7cm, 70mm, 2.75in or 200pt");
  refused({"--width", "2cm"}, "too small for text of 9 pt", "give at least 5.7");
  refused({"--font-size", "9"}, "need --width", "--width 7cm");
  refused({"--width", "7cm", "--format", "html"}, "need a format of pictures", "svg, png");
  refused({"--format", "pgf"}, "there is no \"pgf\"", "did you mean \"pdf\"?");
  refused({"--format", "vega-lite"}, "there is no \"vega-lite\"",
          "choose from html, json, svg, png, pdf, csv");
  CHECK_FALSE(std::filesystem::exists(yard.scratch().path() / "refused"));
}

TEST_CASE("show prints the mean time of each part of a step, or of an epoch without a number of steps") {
  const auto shown = [](const std::string& more) {
    const Scratch scratch;
    scratch.write("arm.sh",
                  shell_arm(R"(record epoch '"epoch":1,"train_seconds":0.02,"validation_seconds":0,)" + more +
                            R"("seconds":{"forward":0.006,"backward":0.012,"bubble":0,)" +
                            R"("other":0.002},"metrics":[]'; finish)"));
    scratch.write("arms.toml", shell_arm_file("[7]"));
    const auto run = scratch.at({"run", "arms.toml", "--no-report"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    return scratch.at({"show", "last"}).out;
  };
  const std::string by_step = shown("\"steps\":10,");
  CHECK_MESSAGE(contains(by_step, "part of a step     ms     %\n"), by_step);
  CHECK_MESSAGE(contains(by_step, "forward         0.600  30.0\n"), by_step);
  CHECK_MESSAGE(contains(by_step, "backward        1.200  60.0\n"), by_step);
  CHECK_MESSAGE(contains(by_step, "other           0.200  10.0\n"), by_step);
  CHECK_FALSE(contains(by_step, "bubble"));
  const std::string by_epoch = shown("");
  CHECK_MESSAGE(contains(by_epoch, "part of an epoch      s     %\n"), by_epoch);
  CHECK_MESSAGE(contains(by_epoch, "forward           0.006  30.0\n"), by_epoch);
}

namespace {

// A yard with one finished run of `model`, whose arm records `metrics` in its test.
class Tested {
 public:
  Tested(const std::string& model, const std::string& dataset, const std::string& metrics,
         const std::string& more = "") {
    scratch_.write("arm.sh",
                   shell_arm("epoch 1\nrecord test '\"seconds\":0.1,\"metrics\":[" + metrics + "]'\nfinish"));
    scratch_.write("one.toml",
                   "name = \"one\"\n[matrix]\nmodel = [\"" + model +
                       "\"]\nstrategy = [\"mine\"]\nseed = [7]\n[defaults]\ndataset = \"" + dataset +
                       "\"\nepochs = 1\n[strategy.mine]\ncommand = [\"/bin/sh\", \"arm.sh\", \"{seed}\"]\n" +
                       more);
    run_ = at({"run", "one.toml"});
  }
  const Output& run() const { return run_; }
  Output at(const Texts& arguments) const { return run_trainyard(scratch_.path(), arguments); }
  std::string page() const { return tests::read_text(scratch_.path() / "yard/reports/one/index.html"); }

 private:
  Scratch scratch_;
  Output run_;
};

std::string metric(const std::string& name, const std::string& sum, const std::string& weight) {
  return R"({"phase":"test","name":")" + name + R"(","sum":)" + sum + R"(,"weight":)" + weight + "}";
}

}  // namespace

// The counts and their score 80.910671 come from sacreBLEU 2.5. exp(1.5) is 4.4817.
TEST_CASE("BLEU is from 0 to 100 in show, sql, export, the page and [expect]") {
  const std::string metrics = metric("loss", "15", "10") + "," + metric("bleu_1", "6", "7") + "," +
                              metric("bleu_2", "5", "6") + "," + metric("bleu_3", "4", "5") + "," +
                              metric("bleu_4", "3", "4") + "," + metric("bleu_length", "7", "6");
  const Tested yard("seq2seq", "synthetic-phrases", metrics, "[expect.seq2seq]\ntest_bleu = 81\n");
  CHECK(yard.run().code == 1);
  CHECK_MESSAGE(contains(yard.run().err, "missed: "), yard.run().err);
  CHECK_MESSAGE(contains(yard.run().err, "80.9"), yard.run().err);
  CHECK(
      contains(yard.at({"show", "last"}).out, "test loss 1.50000, test perplexity 4.482, test BLEU 80.91\n"));
  const auto answer =
      yard.at({"sql", "SELECT round(test_bleu, 6) AS bleu FROM task_final_metrics", "--format", "csv"});
  CHECK(answer.out == "bleu\n80.910671\n");
  CHECK(contains(yard.at({"export", "final"}).out, ",80.91067"));
  CHECK(contains(yard.page(), "BLEU 80.91"));
}

TEST_CASE("show of a reconstruction has PSNR for its test and epochs, and no accuracy") {
  const Tested yard("conv-autoencoder", "synthetic-digits", metric("loss", "0.1", "10"));
  REQUIRE_MESSAGE(yard.run().code == 0, yard.run().err);
  const auto shown = yard.at({"show", "last"}).out;
  CHECK_MESSAGE(contains(shown, "test loss 0.01000, test PSNR 20.00 dB\n"), shown);  // 10 log10(1 / 0.01)
  CHECK_MESSAGE(contains(shown, "epoch  train loss  train PSNR dB  train s"), shown);
  CHECK_FALSE(contains(shown, "accuracy"));
}
