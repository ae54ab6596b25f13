// Sweeps that must not get a verdict, or only with a mark, in every output: terminal, page, Markdown and
// `compare`. The last part runs programs that change, other settings and numbers of samples, and times and sums
// that are not what they seem.
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

std::string cnn_file(const std::string& name, const std::string& more) {
  return "name = \"" + name + R"("
[matrix]
model = ["cnn"]
strategy = ["single", "ddp"]
seed = { count = 2 }
[defaults]
dataset = "synthetic-digits"
train_samples = 300
epochs = 2
batch = 50
)" + more;
}

// All verdicts of `compare --format json`.
nlohmann::json verdicts_of(const nlohmann::json& said) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& comparison : said.at("comparisons"))
    for (const auto& cell : comparison.at("cells"))
      for (const auto& verdict : cell.at("verdicts")) all.push_back(verdict);
  return all;
}

nlohmann::json json_of(const Output& output) {
  REQUIRE_MESSAGE(output.code == 0, output.err);
  return nlohmann::json::parse(output.out);
}

}  // namespace

#ifdef TRAINYARD_UNSYNCHRONISED_RUNNER
TEST_CASE("an arm with unsynchronised gradients is BROKEN in every output, with the layer") {
  const Scratch scratch;
  const std::filesystem::path built = std::filesystem::path(TRAINYARD_PROGRAM).parent_path();
  const auto programs = scratch.path() / "programs";
  std::filesystem::create_directory(programs);
  std::filesystem::copy_file(TRAINYARD_PROGRAM, programs / "trainyard");
  std::filesystem::copy_file(built / "trainyard-store", programs / "trainyard-store");
  std::filesystem::copy_file(TRAINYARD_UNSYNCHRONISED_RUNNER, programs / "trainyard-runner");
  const auto at = [&](const std::vector<std::string>& arguments) {
    return scratch.at(arguments, {}, (programs / "trainyard").string());
  };
  scratch.write("cnn.toml", cnn_file("unsynchronised", "[strategy.ddp]\nreplicas = 2\n"));

  const auto run = checked_output(at({"run", "cnn.toml"}), 1, "4 runs finished");  // the sweep continues
  const std::string reason = "the gradient of layer 0.weight differs from the reference after step 1";
  CHECK_MESSAGE(contains(run.err, "broken: CNN ddp: " + reason), run.err);
  for (const char* option : {"--max-retries=0", "--no-report"}) {  // nothing is left to train
    const auto again = checked_output(at({"run", "cnn.toml", option}), 1, "4 were finished before");
    CHECK_MESSAGE(contains(again.err, "broken: CNN ddp: " + reason), again.err);
  }
  CHECK(at({"resume"}).code == 1);
  for (const char* words : {"deteriorates", "broken", "missing,broken"})
    checked_error(at({"compare", "--fail-on", words}), 3, "CNN ddp: BROKEN (");
  CHECK(at({"compare", "--fail-on", "not-comparable,not-verified,undecided,missing"}).code == 0);
  CHECK(contains(run.out, "warning: BROKEN: CNN ddp: " + reason));
  CHECK(contains(tests::read_text(scratch.path() / "yard/reports/unsynchronised/index.html"), "BROKEN"));
  REQUIRE(at({"report", "--format", "markdown", "--out", "md"}).code == 0);
  CHECK(contains(tests::read_text(scratch.path() / "md/report.md"), "BROKEN: CNN ddp: " + reason));
  const auto verdicts = verdicts_of(json_of(at({"compare", "single", "ddp", "--format", "json"})));
  REQUIRE(verdicts.size() > 0);
  for (const auto& verdict : verdicts) {
    CHECK(verdict.at("verdict") == "BROKEN");
    CHECK(verdict.at("reason").at("text").get<std::string>().starts_with(reason));
  }

  // Each arm once, with two steps on every rank. Only the probe found the fault: the losses of the ranks look
  // fine.
  CHECK(json_of(at({"sql",
                    "SELECT strategy, seed, COUNT(*) AS records FROM probe JOIN run_summary USING (run_key) "
                    "GROUP BY run_key ORDER BY records",
                    "--format", "json"})) ==
        nlohmann::json::parse(R"([{"strategy": "single", "seed": 0, "records": 2},
                                  {"strategy": "ddp", "seed": 0, "records": 4}])"));
}
#endif

TEST_CASE("training stuck at ln 10 is reported, and arms with different global batches are NOT COMPARABLE") {
  const Scratch scratch;
  // Weights that halve in each step give every class the same probability.
  scratch.write("cnn.toml",
                cnn_file("stuck", "weight_decay = 10\n[strategy.ddp]\nreplicas = 2\nbatch = 100\n"));
  const Output run = scratch.at({"run", "cnn.toml"});
  CHECK_MESSAGE(run.code == 0, run.err);
  const std::vector<std::string> said{
      "CNN single and 1 other arm: 2 of 2 runs are at chance: the training loss stays at ln 10 = 2.303 and "
      "the "
      "accuracy at 1/10",
      "NOT COMPARABLE: CNN ddp: global batch (samples per step) 100 against 50",
      "the first steps of each arm were compared"};
  REQUIRE(scratch.at({"report", "--format", "markdown", "--out", "md"}).code == 0);
  const std::string page = tests::read_text(scratch.path() / "yard/reports/stuck/index.html");
  const std::string markdown = tests::read_text(scratch.path() / "md/report.md");
  for (const std::string& text : said) {
    CAPTURE(text);
    CHECK(contains(page, text));
    CHECK(contains(markdown, text));
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK(contains(run.out, "warning: " + said[i]));
  for (const auto& verdict : verdicts_of(json_of(scratch.at({"compare", "--format", "json"}))))
    CHECK(verdict.at("verdict") == "NOT COMPARABLE");
  CHECK(scratch.at({"compare", "--fail-on", "deteriorates"}).code == 3);
  CHECK(scratch.at({"compare", "--fail-on", "not-comparable"}).code == 3);
  CHECK(scratch.at({"compare", "--fail-on", "broken,not-verified,undecided,missing"}).code == 0);
}

namespace {

// Two shell scripts as arms, base.sh and mine.sh, with three seeds.
struct Arms {
  Scratch scratch;

  Arms(const std::string& base, const std::string& mine, const std::string& more = "") {
    const auto arm = [](const std::string& name) {
      return "[strategy." + name + "]\ncommand = [\"/bin/sh\", \"" + name +
             ".sh\", \"{seed}\"]\nfiles = [\"" + name + ".sh\"]\n";
    };
    scratch.write("base.sh", shell_arm(base));
    scratch.write("mine.sh", shell_arm(mine));
    scratch.write("arms.toml",
                  "name = \"arms\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"base\", \"mine\"]\n"
                  "seed = { count = 3 }\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n[compare]\n"
                  "baseline = \"base\"\n" +
                      arm("base") + arm("mine") + more);
  }

  Output at(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment = {}) const {
    return scratch.at(arguments, environment);
  }

  // On the training loss or the training time.
  nlohmann::json verdict(const std::string& metric) const {
    const Output output = at({"compare", "--format", "json"});
    REQUIRE_MESSAGE(output.code == 0, output.err);
    for (const auto& one : verdicts_of(nlohmann::json::parse(output.out)))
      if (one.at("metric") == "train-" + metric) return one;
    FAIL("no verdict on " << metric);
    return {};
  }

  std::string file(const std::string& name) const {
    std::string content = tests::read_text(scratch.path() / "files" / name);
    for (auto at = content.find("\\_"); at != std::string::npos; at = content.find("\\_"))
      content.erase(at, 1);
    return content;
  }

  // The text in every output. LaTeX has the reasons of few words, so it may have another text.
  void check_in_every_output(const std::string& text, const std::string& in_latex) const {
    REQUIRE(at({"report", "--format", "html,csv,markdown,latex", "--out", "files"}).code == 0);
    CHECK(contains(at({"compare", "--format", "csv"}).out, text));
    CHECK(contains(file("index.html"), text));
    CHECK(contains(file("report.md"), text));
    CHECK(contains(file("tables/verdicts.csv"), text));
    CHECK(contains(file("tables/effects.tex"), in_latex));
  }
};

// The record of an epoch with these sums and weights, and of a test.
std::string epoch_record(const std::string& train_sum, int train, int validation,
                         const std::string& seconds) {
  const auto metric = [](const std::string& phase, const std::string& sum, int weight) {
    return R"({\"phase\":\")" + phase + R"(\",\"name\":\"loss\",\"sum\":)" + sum + R"(,\"weight\":)" +
           std::to_string(weight) + "}";
  };
  return R"(record epoch "\"epoch\":1,\"train_seconds\":)" + seconds +
         R"(,\"validation_seconds\":0,\"metrics\":[)" + metric("train", train_sum, train) + "," +
         metric("validation", "5$seed", validation) + "]\"\nfinish";
}

// Rank 0 of a run in Python: `record(type, **members)` as in docs/your-own-program.md, and `begin`.
std::string python_arm(const std::string& body) {
  return R"py(import json, os, sys, time
run = json.load(open(os.environ["TRAINYARD_RUN"]))
begin, number = time.monotonic(), 0
log = open(f"{run['records']}/rank-0.records.jsonl", "ab", buffering=0)
def record(type, **members):
    global number
    common = {"v": 1, "run": run["run"], "attempt": run["attempt"], "rank": 0, "seq": number, "type": type,
              "time": "2026-11-20T09:30:12Z", "elapsed_seconds": time.monotonic() - begin}
    log.write(json.dumps({**common, **members}).encode() + b"\n")
    number += 1
def epoch(number, seconds):
    record("epoch", epoch=number, train_seconds=seconds, validation_seconds=0,
           metrics=[{"phase": "train", "name": "loss", "sum": 50 + run["seed"] / 10, "weight": 100}])
)py" + body;
}

std::string python_file(const std::string& matrix, const std::string& strategies) {
  return "name = \"arms\"\n[matrix]\nmodel = [\"mlp\"]\n" + matrix +
         "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 3\n" + strategies;
}

std::string python_strategy(const std::string& name) {
  return "[strategy." + name + "]\ncommand = [\"" TRAINYARD_PYTHON "\", \"" + name + ".py\"]\nfiles = [\"" +
         name + ".py\"]\n";
}

}  // namespace

TEST_CASE("a program that is edited during a sweep fails its run, and no later run uses it") {
  const Scratch scratch;
  scratch.write("mine.py", python_arm("for n in (1, 2, 3):\n    epoch(n, 0.001)\n"
                                      "open(__file__, 'a').write('# edited\\n')\n"
                                      "record('end', status='finished')\n"));
  scratch.write("arms.toml",
                python_file("strategy = [\"mine\"]\nseed = { count = 3 }\n", python_strategy("mine")));
  const auto run =
      checked_output(scratch.at({"run", "arms.toml", "--max-retries", "1", "--backoff", "0", "--no-report"}),
                     1, "0 runs finished, 0 were finished before, 3 failed");
  CHECK_MESSAGE(contains(run.err, "mine.py has changed since the sweep began"), run.err);
  const std::string ran = scratch.at({"sql", "SELECT COUNT(*) AS n FROM process", "--format", "csv"}).out;
  CHECK_MESSAGE(contains(ran, "\n1\n"), ran);  // the first run; the retry and later runs were not launched
  const auto failed = [&] {
    return scratch
        .at({"sql",
             "SELECT COUNT(*) AS n FROM run_state WHERE status = 'failed' AND failure LIKE 'mine.py has%'",
             "--format", "csv"})
        .out;
  };
  CHECK_MESSAGE(contains(failed(), "\n3\n"), failed());
  REQUIRE(scratch.at({"db", "rebuild"}).code == 0);
  CHECK_MESSAGE(contains(failed(), "\n3\n"), failed());
}

TEST_CASE("a program that is edited after the first run was launched fails a comparison's gate") {
  const Arms arms("epoch 1; finish", "[ $seed != 0 ] || echo '# edited' >> mine.sh\nepoch 1; finish");
  CHECK(arms.at({"run", "arms.toml", "--no-report"}).code == 1);
  CHECK(arms.at({"compare", "--fail-on", "missing"}).code == 3);
}

TEST_CASE("`check` warns if `files` is missing or lacks files that the command names, at most 20 times") {
  const Scratch scratch;
  scratch.write("train.py", "");
  scratch.write("small.json", "");
  const auto warnings = [&](const std::string& strategy) {
    scratch.write("own.toml",
                  python_file("strategy = [\"mine\"]\nseed = [0]\n", "[strategy.mine]\n" + strategy));
    const Output output = scratch.at({"check", "own.toml"});
    CHECK_MESSAGE(output.code == 0, output.err);
    std::string text = output.err;
    for (char& c : text) c = c == '\n' ? ' ' : c;
    return text;
  };
  const std::string command = R"(command = ["/bin/sh", "train.py", "--config=small.json", "absent.py"])";
  const std::string none = warnings(command + "\n");
  CHECK_MESSAGE(contains(none, "warning: strategy \"mine\" has no `files`"), none);
  CHECK_MESSAGE(contains(none, "such as \"train.py\""), none);
  const std::string one = warnings(command + "\nfiles = [\"train.py\"]\n");
  CHECK_MESSAGE(contains(one, "`files` of strategy \"mine\" lacks \"small.json\""), one);
  CHECK_FALSE(contains(one, "\"train.py\""));
  CHECK(warnings(command + "\nfiles = [\"*.py\", \"./small.json\"]\n").empty());
  std::string parts = "command = [\"/bin/sh\"";
  for (int i = 0; i < 22; ++i) {
    scratch.write("part" + std::to_string(i), "");
    parts += ", \"part" + std::to_string(i) + "\"";
  }
  const std::string many = warnings(parts + "]\nfiles = [\"train.py\"]\n");
  CHECK_MESSAGE(contains(many, "lacks \"part19\""), many);
  CHECK_FALSE(contains(many, "lacks \"part20\""));
  CHECK_MESSAGE(contains(many, "and 2 more warnings"), many);
}

TEST_CASE("times of arms with another environment are not compared, and their losses are marked") {
  const std::string body = epoch_record("5$seed", 10, 10, "0.00$((1 + seed))");
  for (const bool in_the_file : {true, false}) {
    CAPTURE(in_the_file);
    const Arms arms(body, body, in_the_file ? "env = { ATEN_CPU_CAPABILITY = \"default\" }\n" : "");
    if (!in_the_file)
      REQUIRE(arms.at({"run", "arms.toml", "--no-report", "--where", "strategy=mine"},
                      {{"ATEN_CPU_CAPABILITY", "default"}})
                  .code == 0);
    const Output run =
        arms.at({"run", "arms.toml", "--no-report", "--where", in_the_file ? "model=mlp" : "strategy=base"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const std::string difference = "ATEN_CPU_CAPABILITY default against not set";
    const auto time = arms.verdict("seconds");
    CHECK(time.at("verdict") == "NOT COMPARABLE");
    CHECK(time.at("reason").at("text").get<std::string>().starts_with(difference));
    const auto loss = arms.verdict("loss");
    CHECK(loss.at("verdict") != "NOT COMPARABLE");
    CHECK(
        loss.at("caveats") ==
        nlohmann::json::array({{{"mark", "SETTINGS"}, {"text", difference + " (seed 0, seed 1, seed 2)"}}}));
    arms.check_in_every_output(difference, "SETTINGS: " + difference);
    CHECK(contains(arms.at({"compare"}).out, "SETTINGS"));
    CHECK(arms.at({"compare", "--fail-on", "not-comparable"}).code == 3);
    CHECK(contains(arms.file("report.md"), "Settings: runs differ (ATEN_CPU_CAPABILITY: default, not set)"));
  }
}

TEST_CASE("times of two builds of one version are not compared, and `run` trains again with a new build") {
  const Scratch scratch;
  const auto built = std::filesystem::path(TRAINYARD_PROGRAM).parent_path();
  for (const char* name : {"trainyard", "trainyard-store"})
    std::filesystem::copy_file(built / name, scratch.path() / name);
  const auto runner = scratch.path() / "trainyard-runner";
  std::filesystem::copy_file(FAKE_RANK, runner);
  scratch.write(
      "small.toml",
      "name = \"small\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"ddp\"]\n"
      "seed = { count = 2 }\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n"
      "train_samples = 80\nbatch = 8\n[compare]\ndiffers = [\"samples\"]\n");  // each fake rank has its own
  const auto at = [&](const std::vector<std::string>& arguments) {
    return scratch.at(arguments, {}, (scratch.path() / "trainyard").string());
  };
  REQUIRE(at({"run", "small.toml", "--no-report", "--where", "strategy=single"}).code == 0);
  std::ofstream(runner, std::ios::app) << "a rebuilt program";
  REQUIRE(at({"run", "small.toml", "--no-report", "--where", "strategy=ddp"}).code == 0);
  const Output compared = at({"compare", "--format", "json"});
  CHECK_MESSAGE(contains(compared.out, "NOT COMPARABLE"), compared.out);
  CHECK_MESSAGE(contains(compared.out, "\"text\": \"build "), compared.out);
  CHECK(at({"compare", "--fail-on", "not-comparable"}).code == 3);
  const Output again = at({"run", "small.toml", "--no-report"});
  CHECK_MESSAGE(contains(again.out, "2 runs finished, 2 were finished before"), (again.out + again.err));
}

TEST_CASE("arms with other numbers of training or validation samples are NOT COMPARABLE") {
  const std::string base = epoch_record("5$seed", 500, 1000, "0.001");
  for (const auto& [mine, reason] :
       {std::pair(epoch_record("5$seed", 250, 1000, "0.001"), "samples seen in an epoch 250 against 500"),
        std::pair(epoch_record("5$seed", 500, 100, "0.001"), "validation samples 100 against 1000")}) {
    const Arms arms(base, mine);
    REQUIRE(arms.at({"run", "arms.toml", "--no-report"}).code == 0);
    const auto loss = arms.verdict("loss");
    CHECK(loss.at("verdict") == "NOT COMPARABLE");
    CHECK(loss.at("reason").at("text").get<std::string>().starts_with(reason));
    arms.check_in_every_output(reason, "NOT COMPARABLE");
    CHECK(arms.at({"compare", "--fail-on", "not-comparable"}).code == 3);
  }
}

TEST_CASE("times of a program that measures a part of its training do not count") {
  const Scratch scratch;
  const auto program = [](const std::string& stated) {
    return python_arm(
        "record('start', pid=os.getpid())\nfor n in (1, 2, 3):\n"
        "    begun = time.monotonic()\n    time.sleep(0.3)\n    epoch(n, " +
        stated + ")\nrecord('end', status='finished', setup_seconds=0)\n");
  };
  scratch.write("whole.py", program("time.monotonic() - begun"));
  scratch.write("part.py", program("0.02"));
  scratch.write("arms.toml", python_file("strategy = [\"whole\", \"part\"]\nseed = { count = 2 }\n",
                                         "[compare]\nbaseline = \"whole\"\n" + python_strategy("whole") +
                                             python_strategy("part")));
  const Output run = scratch.at({"run", "arms.toml", "--no-report"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK_MESSAGE(contains(run.out, "its times do not count: rank 0 recorded only 0.06 s of the"), run.out);
  const std::string counted =
      scratch
          .at({"sql",
               "SELECT strategy, SUM(times_count), MIN(times_problem) FROM run_summary "
               "GROUP BY strategy ORDER BY strategy",
               "--format", "csv"})
          .out;
  CHECK_MESSAGE(contains(counted, "part,0,rank 0 recorded only 0.06 s of the "), counted);
  CHECK_MESSAGE(contains(counted, "whole,2,"), counted);
  std::string compared = scratch.at({"compare", "--format", "csv"}).out;
  const std::string example = "for example ";  // only if the reasons of the two runs differ in a digit
  if (const auto place = compared.find(example); place != std::string::npos)
    compared.erase(place, example.size());
  CHECK_MESSAGE(contains(compared, "the times of both runs of part do not count (rank 0 recorded only"),
                compared);
  CHECK(scratch.at({"compare", "--fail-on", "missing"}).code == 3);
  const std::string key =
      scratch.at({"sql", "SELECT MIN(run_key) FROM run_summary WHERE strategy = 'part'", "--format", "csv"})
          .out;
  CHECK(contains(scratch.at({"show", key.substr(key.find('\n') + 1, 12)}).out,
                 "rank 0 recorded only 0.06 s of the"));
}

TEST_CASE("times of a rank that was stopped for a while do not count") {
  const Scratch scratch;
  scratch.write("mine.py", python_arm(R"py(import signal, subprocess
record("start", device="cpu:0")
for n in (1, 2, 3):
    begun, used = time.monotonic(), time.process_time()
    if n == 2:
        subprocess.Popen(["sh", "-c", f"sleep 1.5; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
    while time.process_time() < used + 0.1: pass
    record("epoch", epoch=n, train_seconds=time.monotonic() - begun, validation_seconds=0,
           processor_seconds=time.process_time() - used, metrics=[])
record("end", status="finished", setup_seconds=0)
)py"));
  scratch.write("arms.toml", python_file("strategy = [\"mine\"]\nseed = [0]\n", python_strategy("mine")));
  // On a busy machine the reason is that other processes took its core.
  const Output run = scratch.at({"run", "arms.toml", "--no-report"}, {{"TRAINYARD_OTHERS_LIMIT", "0.02"}});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const std::string counted =
      scratch.at({"sql", "SELECT times_count, times_problem FROM run_summary", "--format", "csv"}).out;
  CHECK_MESSAGE(contains(counted, "\n0,"), counted);
  const bool said = contains(counted, "it was probably stopped") || contains(counted, "other processes took");
  CHECK_MESSAGE(said, counted);
}

TEST_CASE("a mean that is recorded as a sum is marked: equal first weights, but first losses far apart") {
  const std::string start = "record start '\"initial_weights\":{\"0.weight\":\"3fa9\"}'\n";
  const Arms arms(start + epoch_record("1150.$seed", 500, 100, "0.001"),
                  start + epoch_record("2.3$seed", 500, 100, "0.001"));
  REQUIRE(arms.at({"run", "arms.toml", "--no-report"}).code == 0);
  const auto loss = arms.verdict("loss");
  CHECK(loss.at("caveats").at(0).at("mark") == "DOUBTFUL");
  CHECK(contains(loss.at("caveats").at(0).at("text").get<std::string>(), "0.0046 against 2.3 (seed 0)"));
  arms.check_in_every_output("0.0046 against 2.3 (seed 0)", "0.0046 against 2.3 (seed 0)");
  const std::string word = loss.at("verdict").get<std::string>();
  CHECK(contains(arms.at({"compare"}).out, word + ", DOUBTFUL"));
}
