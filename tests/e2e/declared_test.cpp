// A user's program with its own model, data set, files and variables, from the file to the page.

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

std::string own_file() {
  return "name = \"own\"\n[matrix]\nmodel = [\"char-gpt\"]\nstrategy = [\"one\", \"two\"]\nwidth = [64, "
         "128]\n"
         "seed = [0, 1, 2]\n[defaults]\nepochs = 1\n"
         "[model.char-gpt]\ntitle = \"Character GPT\"\ndataset = \"my-captions\"\nparameters = { width = 32 "
         "}\n"
         "[dataset.my-captions]\ntitle = \"My captions\"\n"
         "[strategy.one]\ncommand = [\"/bin/sh\", \"arm.sh\", \"{seed}\", \"{width}\"]\nfiles = [\"*.sh\", "
         "\"pkg\"]\n"
         "env = { OWN_WIDTH = \"w{width}\" }\n"
         "[strategy.two]\ncommand = [\"/bin/sh\", \"arm.sh\", \"{seed}\", \"{width}\", \"again\"]\n"
         "[compare]\naxis = \"strategy\"\nbaseline = \"one\"\n";
}

}  // namespace

TEST_CASE("check, plan, run, show, compare and report name a declared model and data set") {
  const Scratch scratch;
  scratch.write("own.toml", own_file());
  scratch.write("arm.sh", shell_arm("echo \"width $2 variable ${OWN_WIDTH:-none}\"\nepoch 1\nfinish"));
  std::filesystem::create_directory(scratch.path() / "pkg");
  scratch.write("pkg/layers.py", "pass\n");
  const auto at = [&](const std::vector<std::string>& arguments) {
    return scratch.at(arguments, {{"TRAINYARD_DATA", ""}});
  };
  const auto checked = at({"check", "own.toml"});
  CHECK_MESSAGE(contains(checked.out, "own.toml: ok, 12 runs"), checked.err);
  const auto planned = at({"plan", "own.toml"});
  CHECK_MESSAGE(contains(planned.out, "char-gpt one seed 0 width=128"), (planned.out + planned.err));
  const auto ran = at({"run", "own.toml"});
  REQUIRE_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(contains(ran.out, "12 runs finished"));
  const auto logs = at({"logs", "last"});
  CHECK_MESSAGE(contains(logs.out, "width 128 variable"), logs.out);
  const auto shown = at({"show", "last"});
  CHECK_MESSAGE(contains(shown.out, "(Character GPT)"), shown.out);
  CHECK(contains(shown.out, "(My captions)"));
  CHECK(contains(shown.out, "width"));
  CHECK(contains(at({"status", "--runs"}).out, "char-gpt"));
  const auto compared = at({"compare"});
  CHECK_MESSAGE(contains(compared.out, "Character GPT"), (compared.out + compared.err));
  REQUIRE(at({"report"}).code == 0);
  CHECK(contains(tests::read_text(scratch.path() / "yard/reports/own/index.html"), "Character GPT"));
  const auto exported = at({"export"});
  CHECK_MESSAGE(contains(exported.out, "char-gpt"), (exported.out + exported.err));
  const auto values = at({"sql", "SELECT DISTINCT model, dataset FROM run", "--format", "csv"});
  CHECK_MESSAGE(contains(values.out, "char-gpt,my-captions"), values.out);
  CHECK(at({"db", "rebuild"}).code == 0);
  CHECK(contains(at({"compare"}).out, "Character GPT"));
  CHECK(at({"plan", "own.toml"}).out.find("12 finished") != std::string::npos);
  scratch.write("pkg/layers.py", "changed = True\n");
  CHECK(contains(at({"plan", "own.toml"}).out, "6 to run"));  // the runs of the arm that declares the folder
}

TEST_CASE("variables of env reach only the ranks of their own arm") {
  const Scratch scratch;
  scratch.write("own.toml", own_file());
  scratch.write("arm.sh", shell_arm("echo \"variable ${OWN_WIDTH:-none}\"\nepoch 1\nfinish"));
  std::filesystem::create_directory(scratch.path() / "pkg");
  scratch.write("pkg/layers.py", "pass\n");
  for (const auto& [arm, variable] :
       {std::pair("one", "variable w128\n"), std::pair("two", "variable none\n")}) {
    const auto ran = scratch.at({"run", "own.toml", "--no-report", "--where", "seed=0", "--where",
                                 "width=128", "--where", std::string("strategy=") + arm});
    REQUIRE_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK(scratch.at({"logs", "last"}).out == variable);
  }
}
