// Names and texts with a special meaning in a terminal, shell, page, database or path. Each verb treats them
// as text or refuses them when it reads the file. Links in a yard never lead to changes outside it.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"
#include "tests/support/terminal.h"

using namespace trainyard;
using namespace trainyard::e2e;
namespace fs = std::filesystem;

namespace {

// Some contain a terminal escape, a newline, the one-character form of the escape, or a change of the writing
// direction.
const std::vector<std::string> hostile_names = {"$(touch hacked)",
                                                "`touch hacked`",
                                                "; touch hacked #",
                                                "../../outside",
                                                "/etc/passwd",
                                                "..",
                                                "a/b",
                                                "a\\b",
                                                "<script>x</script>",
                                                "x' OR 1=1; DROP TABLE run; --",
                                                "\x1b[31mred",
                                                "two\nlines",
                                                "\u009b2J",
                                                "\u202etxt.exe",
                                                "%s%n",
                                                "-rf*",
                                                ""};

// As a TOML or JSON string.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true);
}

std::set<std::string> names_below(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// True if `text` has ASCII control characters other than newline and tab, or two of the longer ones in UTF-8.
bool has_control_characters(const std::string& text) {
  for (const char* wide : {"\xc2\x9b", "\xe2\x80\xae"})
    if (contains(text, wide)) return true;
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t') || c == 127;
  });
}

// A program that puts `evil` into every text field of its records.
constexpr const char* evil_arm = R"py(
import json, os, sys
run = json.load(open(os.environ["TRAINYARD_RUN"]))
evil, seq = open("evil.txt", encoding="utf-8").read(), -1
def record(type, **members):
    global seq
    seq += 1
    line = {"v": 1, "run": run["run"], "attempt": run["attempt"], "rank": 0, "seq": seq, "type": type,
            "time": "2026-11-20T09:30:12.345Z", "elapsed_seconds": seq, **members}
    with open(f"{run['records']}/rank-0.records.jsonl", "a") as spool: spool.write(json.dumps(line) + "\n")
def metrics(phase):
    rows = [{"phase": phase, "name": n, "sum": 5 + run["seed"], "weight": 10} for n in ("loss", "correct", evil)]
    return rows + [{"phase": evil, "name": evil, "sum": 1, "weight": 1}]
record("start", world_size=1, replica=0, stage=0, device=evil, host=evil, processor=evil, release=evil, libtorch=evil)
record("probe", step=1, loss=1.5, layers=[{"path": evil, "gradient_norm": 1.0, "parameter_hash": evil}])
for level in ("warning", "error", evil): record("message", level=level, text=evil)
record(evil, text=evil)
for epoch in (1, 2):
    record("epoch", epoch=epoch, train_seconds=0.001, validation_seconds=0.001, metrics=metrics("train") + metrics("validation"),
           seconds={evil: 1, "data": 0.1})
record("test", seconds=0.001, metrics=metrics("test"))
print("error:", evil, flush=True)
if run["seed"] == 2: record("end", status="failed", error=evil)
if run["seed"] < 2: record("end", status="finished", setup_seconds=0, total_seconds=0.01)
sys.exit(3 if run["seed"] > 1 else 0)
)py";

constexpr const char* evil_text =
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>'; DROP TABLE run; --\" "
    "\x1b[31m\x1b]0;title\x07 "
    "$(touch hacked)`touch hacked` /../../outside \\input{/etc/passwd} | \xc2\x9b"
    "2J \xe2\x80\xae";

std::string evil_file() {
  return "name = \"evil\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"one\", \"two\"]\nseed = { count = 4 }\n"
         "[defaults]\ndataset = \"synthetic-digits\"\nepochs = 2\n[strategy.one]\ncommand = "
         "[\"" TRAINYARD_PYTHON "\", \"arm.py\"]\n[strategy.two]\ncommand = [\"" TRAINYARD_PYTHON
         "\", \"arm.py\", " +
         quoted("</script>\x1b[31m'; $(touch hacked)") + "]\n[compare]\nbaseline = \"one\"\n";
}

// A file "hacked" or "outside" exists if a text was run by a shell or used as a path.
void check_nothing_hacked(const Scratch& scratch) {
  for (const auto& name : names_below(scratch.path())) {
    CHECK_FALSE(contains(name, "hacked"));
    CHECK_FALSE(contains(name, "outside"));
  }
  CHECK_FALSE(fs::exists(scratch.path().parent_path() / "outside"));
}

}  // namespace

TEST_CASE("invalid names are refused when the file is read, and no yard is created") {
  const Scratch scratch;
  for (const auto& name : hostile_names) {
    const std::string text = quoted(name);
    std::string file =
        "name = NAME\n[matrix]\nmodel = [NAME]\nstrategy = [NAME]\nNAME = [1]\n[strategy.NAME]\n"
        "command = [\"/bin/true\"]\n";
    for (auto at = file.find("NAME"); at != std::string::npos; at = file.find("NAME", at + text.size()))
      file.replace(at, 4, text);
    scratch.write("hostile.toml", file);
    for (const char* verb : {"plan", "run"}) {
      const auto refused = scratch.at({verb, "hostile.toml"});
      CHECK_MESSAGE(refused.code == 2, text);
      for (const char* line : {"1", "3", "5", "6"})  // experiment, model, axis, arm
        CHECK_MESSAGE(contains(refused.err, "hostile.toml:" + std::string(line) + ":"),
                      (text + "\n" + refused.err));
      CHECK_FALSE(has_control_characters(refused.err + refused.out));
    }
  }
  CHECK(names_below(scratch.path()) == std::set<std::string>{"hostile.toml", "stdout.txt", "stderr.txt"});
}

TEST_CASE("every verb escapes the texts that a user's program records, and so does the page") {
  if (!has_terminals()) return;
  const Scratch scratch;
  scratch.write("arm.py", evil_arm);
  scratch.write("evil.txt", evil_text);
  scratch.write("evil.toml", evil_file());
  const auto at = [&](const std::vector<std::string>& arguments) {
    auto output = scratch.at(arguments);
    CHECK_MESSAGE(!has_control_characters(output.out + output.err), arguments.front());
    return output;
  };
  CHECK(at({"plan", "evil.toml"}).code == 0);
  const auto ran = checked_output(at({"run", "evil.toml", "--no-report"}), 1,
                                  "4 runs finished, 0 were finished before, 4 failed");
  CHECK(contains(ran.out, "\\u001b[31m"));
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"plan", "evil.toml"},
                                             {"status", "--runs"},
                                             {"show", "last"},
                                             {"export"},
                                             {"export", "runs"},
                                             {"export", "--format", "jsonl"},
                                             {"compare", "one", "two"},
                                             {"compare", "one", "two", "--format", "markdown"},
                                             {"sql", "SELECT * FROM message"},
                                             {"sql", "SELECT * FROM message", "--format", "csv"},
                                             {"db", "check"}})
    CHECK_MESSAGE(at(arguments).code == 0, arguments.front());
  const auto json = at({"sql", "SELECT text FROM message LIMIT 1", "--format", "json"});
  CHECK(nlohmann::json::parse(json.out)[0]["text"] == evil_text);  // exactly what was recorded
  Terminal logs(scratch.path(), {"logs", "last"});
  CHECK(logs.wait() == 0);
  CHECK(contains(logs.output(), "\x1b[31m"));  // a log may have colours
  for (const char* escape : {"\x1b]0;", "\xc2\x9b"}) CHECK_FALSE(contains(logs.output(), escape));

  CHECK(at({"report", "--format", "html,markdown,svg,latex,csv", "--out", "all"}).code == 0);
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path() / "all")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".csv") continue;
    const std::string text = tests::read_text(entry.path());
    for (const char* raw : {"<script>alert", "<img src=x", "\x1b["})
      CHECK_MESSAGE(!contains(text, raw), entry.path().string());
    if (entry.path().extension() == ".tex") CHECK_MESSAGE(!contains(text, "\\input{"), entry.path().string());
  }
  check_nothing_hacked(scratch);
}

TEST_CASE("arguments on the command line are treated as text too") {
  const FinishedArms scratch("epoch 1\nfinish");
  for (const std::string name :
       {"../../outside", "$(touch hacked)", "x' OR 1=1; DROP TABLE run; --\x1b[31m"}) {
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"status", "--", name},
                                               {"show", "--", name},
                                               {"logs", "--", name},
                                               {"rm", "--files", "--", name},
                                               {"export", "--experiment=" + name},
                                               {"report", "--", name},
                                               {"resume", "--", name},
                                               {"plan", "arms.toml", "--where", "strategy=" + name},
                                               {"plan", "arms.toml", "--set", name + "=1"}}) {
      const auto refused = scratch.at(arguments);
      CHECK_MESSAGE(refused.code == 2, (arguments.front() + " " + name + refused.out + refused.err));
      CHECK_FALSE(has_control_characters(refused.out + refused.err));
    }
  }
  check_nothing_hacked(scratch);
  CHECK(contains(scratch.at({"status", "--runs"}).out, "finished"));
}

TEST_CASE("rm, resume and rebuild refuse or ignore links in a yard and change nothing outside it") {
  const FinishedArms scratch("epoch 1\nfinish", "{ count = 2 }");
  const fs::path runs = scratch.path() / "yard/runs", outside = scratch.path() / "elsewhere";
  const fs::path run = fs::directory_iterator(runs)->path();
  const std::string key = run.filename();
  const auto precious = [&] {
    return !tests::read_text(outside / "attempt-1/run.json").empty() && names_below(outside).size() >= 5;
  };

  fs::rename(run, outside);  // the folder of a run
  fs::create_directory_symlink(outside, run);
  REQUIRE(precious());
  checked_error(scratch.at({"rm", "--files", key}), 2, "is a link: the files behind it stay");
  CHECK(contains(scratch.at({"rm", key}).out, "removed " + key));
  checked_error(scratch.at({"resume", "--no-report"}), 2, "is a link");
  CHECK(precious());

  fs::remove(run);  // the folder of an attempt, and a dangling link
  fs::create_directories(run);
  fs::create_directory_symlink(outside / "attempt-1", run / "attempt-1");
  fs::create_directory_symlink(outside / "nowhere", run / "attempt-2");
  CHECK(contains(scratch.at({"resume", "--no-report"}).out, "1 run finished, 1 was finished before"));
  CHECK(contains(scratch.at({"show", key}).out, "attempt 3: finished"));
  CHECK(scratch.at({"db", "rebuild"}).code == 0);
  CHECK(scratch.at({"db", "check"}).code == 0);
  CHECK(contains(scratch.at({"rm", "--files", key}).out, "and its files"));
  CHECK(precious());

  const fs::path reports =
      scratch.path() / "yard/reports/arms";  // the folder, page and figures of the report
  fs::create_directories(reports.parent_path());
  fs::create_directory_symlink(outside, reports);
  CHECK(contains(scratch.at({"report"}).err, "reports/arms is a link"));
  const Output moved = scratch.at({"report", "--out", "elsewhere-indeed"});
  CHECK_MESSAGE(moved.code == 0, moved.err);
  fs::remove(reports);
  fs::create_directories(reports);
  fs::create_symlink(outside / "attempt-1/run.json", reports / "index.html");
  CHECK(scratch.at({"report"}).code == 0);
  CHECK_FALSE(fs::is_symlink(reports / "index.html"));
  fs::remove_all(reports / "figures");
  fs::create_directory_symlink(outside, reports / "figures");
  CHECK(contains(scratch.at({"report", "--format", "svg"}).err, "figures is a link"));
  CHECK(precious());

  const fs::path database = scratch.path() / "yard/results.db";  // the database, and a dangling link
  fs::rename(database, outside / "results.db");
  for (const char* target : {"results.db", "nowhere.db"}) {
    fs::create_symlink(outside / target, database);
    for (const auto& verb : std::vector<std::vector<std::string>>{
             {"resume"}, {"status"}, {"rm", key}, {"db", "rebuild"}, {"db", "check"}, {"report"}})
      CHECK_MESSAGE(contains(scratch.at(verb).err, "results.db is a link"), verb.front());
    fs::remove(database);
  }
  CHECK_FALSE(fs::exists(outside / "nowhere.db"));

  fs::rename(outside / "results.db", database);  // a dangling link to the spool: its target is created
  fs::remove_all(runs);
  fs::create_directory_symlink("../spool/runs", runs);
  const auto spooled = scratch.at({"resume", "--no-report"});
  CHECK_MESSAGE(contains(spooled.out, "1 run finished"), (spooled.out + spooled.err));
  CHECK(fs::is_directory(scratch.path() / "spool/runs" / key));
}

TEST_CASE("a run finishes on a host whose name has any bytes, and its records have the name as text") {
  const Scratch scratch;
  scratch.write("own.toml", R"(name = "own"
[matrix]
model = ["mlp"]
strategy = ["ddp"]
seed = [0]
[defaults]
dataset = "synthetic-digits"
epochs = 1
batch = 500
[strategy.ddp]
replicas = 2
)");
  const auto output = scratch.at({"--uts", "/bin/sh", "-c",
                                  "printf 'caf\\351' > /proc/sys/kernel/hostname || exit 77; "
                                  "exec \"$0\" run own.toml --no-report",
                                  TRAINYARD_PROGRAM},
                                 {}, "/usr/bin/unshare");
  if (output.code == 77 || contains(output.err, "unshare failed")) {
    MESSAGE("only on a host that may be named: " << output.err);
    return;
  }
  REQUIRE_MESSAGE(output.code == 0, (output.out + output.err));
  const std::string query = "SELECT json_extract(circumstances, '$.host') FROM attempt";
  const auto host = scratch.at({"sql", query, "--format", "csv"});
  CHECK_MESSAGE(contains(host.out, "\ncaf\\xe9\n"), host.out);
  std::size_t starts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path() / "yard")) {
    if (!entry.path().string().ends_with(".records.jsonl")) continue;
    for (const std::string& line : tests::read_lines(entry.path()))
      starts += contains(line, R"("host":"caf\\xe9")") ? 1 : 0;
  }
  CHECK(starts == 2);
}
