// User programs as arms: any program that implements the launch and record contracts.
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "experiments/protocol/seal.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

std::string foreign_file(const std::string& command, int replicas, const std::string& more = "") {
  return "name = \"foreign\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"mine\"]\nseed = [3]\n[defaults]\n"
         "dataset = \"synthetic-digits\"\nepochs = 3\nlearning_rate = 0.5\n[strategy.mine]\ncommand = " +
         command + "\nreplicas = " + std::to_string(replicas) + "\n" + more;
}

// The example with a rank 0 that kills itself in its first attempt. Before that it records the checkpoint of
// epoch 2 and waits until rank 1 has recorded that epoch.
std::string killed_after_a_checkpoint(std::string program) {
  const std::string saved = "        record(\"checkpoint\", epoch=epoch)\n";
  const auto place = program.find(saved);
  REQUIRE(place != std::string::npos);
  return program.insert(
      place + saved.size(),
      "        if epoch == 2 and run[\"attempt\"] == 1:\n"
      "            while '\"epoch\": 2' not in open(f\"{run['records']}/rank-1.records.jsonl\").read():\n"
      "                time.sleep(0.01)\n"
      "            os.kill(os.getpid(), 9)\n");
}

constexpr const char* documented_command =
    R"([")" TRAINYARD_PYTHON R"(", "train.py", "--lr", "{learning_rate}", "--batch", "{batch}"])";

// A shell script that trains nothing, records the requested epochs and finishes.
const std::string every_epoch =  // NOLINT(cert-err58-cpp)
    "echo \"arguments: $*\"\n"
    "asked=$(grep -o '\"epochs\": *[0-9]*' \"$TRAINYARD_RUN\" | head -n 1 | grep -o '[0-9]*$')\n"
    "for number in $(seq 1 $asked); do epoch $number; done\n";
const std::string trivial = "#!/bin/sh\n" + shell_arm(every_epoch + "finish");  // NOLINT(cert-err58-cpp)

void run_trivial(const Scratch& scratch, int replicas) {
  scratch.write("program.sh", trivial);
  scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", replicas));
  REQUIRE(scratch.at({"run", "foreign.toml", "--no-report"}).code == 0);
}

}  // namespace

TEST_CASE("`show` lists the warnings of a rank below its attempt") {
  const Scratch scratch;
  const std::string warns =
      R"([ "$RANK" = 0 ] || record message '"level":"warning","text":"the loss rises"')";
  scratch.write("program.sh", shell_arm(every_epoch + warns + "\nfinish"));
  scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", 2));
  const auto output = scratch.at({"run", "foreign.toml", "--no-report"});
  REQUIRE_MESSAGE(output.code == 0, (output.out + output.err));
  const auto shown = scratch.at({"show", "last"});
  CHECK_MESSAGE(contains(shown.out, "\n  warning of rank 1: the loss rises\n"), shown.out);
}

TEST_CASE("the documented PyTorch DDP program is an arm: two ranks learn and resume from their checkpoint") {
  const Scratch scratch;
  const auto program = scratch.write("train.py", documented_example());
  scratch.write("foreign.toml", foreign_file(documented_command, 2, "files = [\"train.py\"]\n"));
  const auto output = scratch.at({"run", "foreign.toml", "--no-report"});
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto epochs = db::epoch_averages(database, "foreign");
  REQUIRE(epochs.size() == 3);
  CHECK(epochs[2]["train_loss"] < epochs[0]["train_loss"]);
  CHECK(epochs[2]["train_accuracy"] > 0.9);  // the class of a point is its side of a plane
  CHECK(db::epoch_replicas(database, "foreign").size() == 6);

  const auto key = db::run_summaries(database).front().run_key;
  std::ofstream(program, std::ios::app) << "# changed\n";
  const auto plan = scratch.at({"plan", "foreign.toml"});
  CHECK_FALSE(contains(plan.out, key));
  CHECK(contains(plan.out, "1 to run"));

  scratch.write("train.py", killed_after_a_checkpoint(documented_example()));
  const auto resumed = scratch.at({"run", "foreign.toml", "--no-report", "--yard", "resumed", "--set",
                                   "checkpoint=epoch", "--max-retries", "1"});
  CHECK_MESSAGE(resumed.code == 0, (resumed.out + resumed.err));
  const auto again =
      db::epoch_averages(db::Database::open_read_only(scratch.path() / "resumed/results.db"), "foreign");
  REQUIRE(again.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(again[i]["train_loss"] == epochs[i]["train_loss"]);
  CHECK(
      contains(scratch.at({"show", "last", "--yard", "resumed"}).out, "resumes after epoch 2 of attempt 1"));
}

TEST_CASE("the documented PyTorch DDP program states all terms of a fair comparison") {
  const Scratch scratch;
  const std::string arm = std::string("command = ") + documented_command + "\nfiles = [\"train.py\"]\n";
  scratch.write("arms.toml",
                "name = \"arms\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"one\", \"two\"]\nseed = [0]\n"
                "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\nbatch = 60\n[strategy.one]\n" +
                    arm + "[strategy.two]\nreplicas = 2\n" + arm +
                    "[compare]\naxis = \"strategy\"\nbaseline = \"one\"\npair = [\"seed\"]\n");
  const auto compared = [&](const std::string& program, const std::string& yard) {
    scratch.write("train.py", program);
    const auto output = scratch.at({"run", "arms.toml", "--no-report", "--yard", yard});
    CHECK_MESSAGE(output.code == 0, (output.out + output.err));
    return scratch.at({"compare", "--yard", yard}).out;
  };
  const std::string stated = compared(documented_example(), "stated");
  CHECK_MESSAGE(contains(stated, "train loss"), stated);
  CHECK_FALSE(contains(stated, "NOT VERIFIED"));
  CHECK_FALSE(contains(stated, "NOT COMPARABLE"));
  std::string less = documented_example();
  const std::string term = ", batch_norm=\"local\"";
  REQUIRE(contains(less, term));
  const std::string silent = compared(less.erase(less.find(term), term.size()), "silent");
  CHECK_MESSAGE(contains(silent, "NOT VERIFIED: the records do not state batch normalisation"), silent);
}

TEST_CASE("arguments are passed unchanged, even if a shell would interpret them") {
  const Scratch scratch;
  scratch.write("program.sh", trivial);
  scratch.write(
      "foreign.toml",
      foreign_file(R"(["/bin/sh", "program.sh", "$(touch hacked); `touch hacked` && rm -rf *", "a b", "{{}",
                                 "{model}/{seed}"])",
                   1));
  const auto output = scratch.at({"run", "foreign.toml", "--no-report"});
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "hacked"));
  const auto logs = scratch.at({"logs", "last"});
  CHECK(logs.out == "arguments: $(touch hacked); `touch hacked` && rm -rf * a b {} mlp/3\n");
}

TEST_CASE("resume needs no experiment file, and a removed run is trained again on request") {
  const Scratch scratch;
  scratch.write("program.sh", trivial);
  const auto file = scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", 1));
  REQUIRE(scratch.at({"run", "foreign.toml", "--no-report", "--set", "epochs=7"}).code == 0);
  std::filesystem::remove(file);
  checked_output(scratch.at({"resume", "--no-report"}), 0,
                 "0 runs finished, 1 was finished before");  // epochs=7 applies again

  const auto removed = scratch.at({"rm", "last", "--files"});
  CHECK(contains(removed.out, "(1 attempt) and its files"));
  CHECK(contains(scratch.at({"db", "check"}).out, "intact, and equal to the files"));
  const auto resumed = scratch.at({"resume", "foreign-try", "--no-report"});
  CHECK_MESSAGE(contains(resumed.out, "1 run finished, 0 were finished before"), (resumed.out + resumed.err));
  CHECK(contains(scratch.at({"show", "last"}).out, "attempt 2: finished"));
  const auto status = scratch.at({"status", "--runs"});
  CHECK(contains(status.out, "finished"));
}

TEST_CASE("a database is checked, copied and rebuilt from the files") {
  const Scratch scratch;
  run_trivial(scratch, 2);
  CHECK(scratch.at({"db", "check"}).code == 0);
  CHECK(scratch.at({"db", "backup", "copy.db"}).code == 0);
  CHECK(std::filesystem::file_size(scratch.path() / "copy.db") > 4096);
  std::ofstream(scratch.path() / "yard/results.db", std::ios::in | std::ios::out).seekp(5000)
      << std::string(20'000, 'x');
  CHECK(scratch.at({"db", "check"}).code != 0);
  const auto rebuilt = scratch.at({"db", "rebuild"});
  CHECK_MESSAGE(rebuilt.code == 0, rebuilt.err);
  // leased, launched, two exited, processor_use, and from each rank 3 epochs and an end
  CHECK_MESSAGE(contains(rebuilt.out, "from 13 records"), rebuilt.out);
  CHECK(scratch.at({"db", "check"}).code == 0);
}

TEST_CASE("a record's time may be in any zone, and a record with an invalid time is omitted and reported") {
  const Scratch scratch;
  scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", 1));
  const auto run_at = [&](const std::string& time) {
    std::string script = trivial;
    const std::string usual = "2026-11-20T09:30:12.345Z";
    scratch.write("program.sh", script.replace(script.find(usual), usual.size(), time));
    const auto output = scratch.at({"run", "foreign.toml", "--no-report"});
    return std::pair(output.code, output.out + output.err);
  };
  const auto [refused, said] = run_at("soon");
  CHECK(refused == 1);
  CHECK_MESSAGE(contains(said, "a line was left out: time is not an RFC 3339 time, as in \"2026-11-20T"),
                said);
  const auto [taken, words] = run_at("2026-11-20 11:30:12.345678+02:00");
  CHECK_MESSAGE(taken == 0, words);
  const auto ended = scratch.at({"sql", "SELECT ended FROM process WHERE ended IS NOT NULL"});
  CHECK_MESSAGE(contains(ended.out, "2026-11-20T09:30:12.345Z"), ended.out);
}

TEST_CASE("db check says for each run what differs and what a rebuild takes, and a rebuild loses no result") {
  const Scratch scratch;
  run_trivial(scratch, 1);
  const auto rows = [&] { return scratch.at({"sql", "SELECT * FROM run_summary", "--format", "csv"}).out; };
  const std::string results = rows();
  REQUIRE(contains(results, "finished"));
  const auto journal = scratch.path() / "yard/journal.jsonl";
  std::ofstream(journal, std::ios::app) << "garbage\n";
  const auto added = checked_output(scratch.at({"db", "check"}), 1, "journal.jsonl:2: not JSON at byte 1\n");
  CHECK_MESSAGE(contains(added.out, "a rebuild would change nothing"), added.out);
  std::ofstream(journal, std::ios::in | std::ios::out) << "x";  // damages the entry that the database has
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path() / "yard/runs"))
    if (entry.path().filename() == "rank-0.records.jsonl") {
      std::filesystem::remove(entry.path());
      std::filesystem::create_symlink("/dev/zero", entry.path());
    }
  const auto damaged = checked_output(scratch.at({"db", "check"}), 1,
                                      "rank-0.records.jsonl: is a link, which is not followed");
  CHECK(contains(damaged.out, "journal.jsonl has 0 of 1 line. A rebuild keeps the rows of the database"));
  CHECK(contains(damaged.out, "records. A rebuild keeps the rows of the database"));
  const auto rebuilt =
      checked_error(scratch.at({"db", "rebuild"}), 0, "records. A rebuild keeps the rows of the database");
  CHECK(contains(rebuilt.out, "left out: 2 damaged lines, the rest of 1 damaged file"));
  CHECK(rows() == results);
}

TEST_CASE("readers name another schema of a database, and `run` and `db rebuild` rebuild it") {
  const Scratch scratch;
  run_trivial(scratch, 1);
  const auto database = scratch.path() / "yard/results.db";
  for (const auto& making :
       std::vector<std::vector<std::string>>{{"run", "foreign.toml", "--no-report"}, {"db", "rebuild"}}) {
    make_older(database, 3);
    for (const auto& reading : std::vector<std::vector<std::string>>{{"status"}, {"db", "check"}}) {
      const auto refused =
          checked_error(scratch.at(reading), 2, "results.db: has schema 3 (this program needs ");
      CHECK(contains(refused.err, "`trainyard db rebuild` rebuilds it from the yard's files"));
    }
    const auto made = scratch.at(making);
    CHECK_MESSAGE(made.code == 0, made.err);
    CHECK(scratch.at({"db", "check"}).code == 0);
  }
  CHECK(std::filesystem::exists(database.string() + ".before-rebuild"));
  CHECK(std::filesystem::exists(database.string() + ".before-rebuild-2"));
}

TEST_CASE("commands that read and commands that write refuse a yard of another format, and name it") {
  const Scratch scratch;
  run_trivial(scratch, 1);
  const auto journal = scratch.path() / "yard/journal.jsonl";
  auto entry = nlohmann::json::parse(std::ifstream(journal));
  entry.erase("crc");
  entry["v"] = 2;
  std::ofstream(journal) << experiments::sealed(entry.dump()) << '\n';
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"report"},
                                             {"db", "check"},
                                             {"db", "rebuild"},
                                             {"rm", "last"},
                                             {"run", "foreign.toml", "--no-report"}}) {
    const auto refused = scratch.at(arguments);
    CAPTURE(arguments.front());
    CHECK(refused.code == 2);
    CHECK_MESSAGE(contains(refused.err,
                           "yard: has format 2, but this program reads format 1; use the "
                           "trainyard that made this yard"),
                  (refused.out + refused.err));
  }
}

TEST_CASE(
    "without trainyard-runner own programs train, and a strategy of trainyard is an error that says so") {
  const Scratch scratch;
  const auto built = std::filesystem::path(TRAINYARD_PROGRAM).parent_path();
  for (const char* name : {"trainyard", "trainyard-store"})
    std::filesystem::copy_file(built / name, scratch.path() / name);
  scratch.write("program.sh", trivial);
  scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", 2));
  scratch.write("nvidia-smi",
                "#!/bin/sh\necho '0, GPU-aa, 81559, NVIDIA H100'\necho '3, GPU-bb, 81559, NVIDIA H100'\n");
  std::filesystem::permissions(scratch.path() / "nvidia-smi", std::filesystem::perms::owner_all);
  std::map<std::string, std::string> environment;
  const auto at = [&](const std::vector<std::string>& arguments) {
    return scratch.at(arguments, environment, (scratch.path() / "trainyard").string());
  };
  checked_output(at({"check", "foreign.toml"}), 0, "foreign.toml: ok, 1 run, on cpu:");
  checked_output(at({"run", "foreign.toml"}), 0, "1 run finished");
  checked_output(at({"show", "last"}), 0, "command of each rank");
  checked_error(at({"run", "foreign.toml", "--set", "strategy=single"}), 2,
                "cannot find trainyard-runner and trainyard-store in");
  environment["PATH"] = scratch.path().string() + ":/usr/bin:/bin";  // where nvidia-smi is
  checked_output(at({"check", "foreign.toml"}), 0, "on cuda:0 (NVIDIA H100), cuda:3 (NVIDIA H100)");
  environment["CUDA_VISIBLE_DEVICES"] = "GPU-bb";
  checked_output(at({"check", "foreign.toml"}), 0, "on cuda:3 (NVIDIA H100)");
}

TEST_CASE("a missing program is an error before anything starts, with the place of its strategy") {
  const Scratch scratch;
  scratch.write("foreign.toml", foreign_file(R"(["no-such-program"])", 1));
  for (const char* verb : {"check", "plan", "run"}) {
    const auto output = checked_error(scratch.at({verb, "foreign.toml"}), 2, "foreign.toml:4:13");
    CHECK_MESSAGE(contains(output.err, "cannot find the program no-such-program"), output.err);
  }
  CHECK(scratch.at({"check", "foreign.toml", "--file-only"}).code == 0);
  scratch.write("foreign.toml", foreign_file(R"(["./program.sh"])", 1));
  CHECK(scratch.at({"check", "foreign.toml"}).code == 2);
  std::filesystem::permissions(scratch.write("program.sh", trivial), std::filesystem::perms::owner_all);
  CHECK(scratch.at({"check", "foreign.toml"}).code == 0);
}

TEST_CASE("if a rank's last record is rejected, the failure gives the reason and not a missing end") {
  const Scratch scratch;
  scratch.write("program.sh", shell_arm(every_epoch + R"(echo '{"v":1,' >> "$dir/rank-$RANK.records.jsonl")" +
                                        "\nseq=$((seq + 1))\nfinish"));
  scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", 1));
  const auto output = checked_error(scratch.at({"run", "foreign.toml", "--no-report"}), 1,
                                    "rank 0 reported that it finished, but that record does not count; "
                                    "in its records a line was left out: not JSON");
  CHECK_FALSE(contains(output.err, "without reporting"));
}

TEST_CASE("Python's NaN in JSON is a NaN loss, and the run continues") {
  const Scratch scratch;
  scratch.write("program.sh", shell_arm(R"(for number in 1 2 3; do
  record epoch "\"epoch\":$number,\"train_seconds\":0.001,\"metrics\":[{\"phase\":\"train\",\"name\":\"loss\",\"sum\":NaN,\"weight\":10}]"
done
finish)"));
  scratch.write("foreign.toml", foreign_file(R"(["/bin/sh", "program.sh"])", 1));
  const auto output = scratch.at({"run", "foreign.toml", "--no-report"});
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  const auto losses =
      scratch.at({"sql", "SELECT COUNT(*) AS n, COUNT(sum) AS known FROM metric", "--format", "csv"});
  CHECK_MESSAGE(contains(losses.out, "3,0"), losses.out);
}

TEST_CASE("a program that exits with a message but no error keyword fails with the last line of its log") {
  const Scratch scratch;
  scratch.write("train.py", "import sys\nprint('step 3')\nsys.exit('out of cheese at line 7')\n");
  scratch.write("foreign.toml", foreign_file(R"([")" TRAINYARD_PYTHON R"(", "train.py"])", 1));
  checked_error(scratch.at({"run", "foreign.toml", "--no-report"}), 1,
                "out of cheese at line 7 (exit code 1)");
}
