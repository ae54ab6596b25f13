// `check`, `plan` and `run` make the same checks and print the same errors.

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

const std::map<std::string, std::string> no_data{{"TRAINYARD_DATA", ""}};

std::string mnist_file(const std::string& more = "") {
  return "name = \"same\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\"]\nseed = [0]\n[defaults]\n"
         "dataset = \"mnist\"\nepochs = 1\ntrain_samples = 200\n" +
         more;
}

// All three end with code 2, with `line` in the error and nothing on standard output.
void all_refuse(const Scratch& scratch, const std::string& line, std::vector<std::string> options = {}) {
  for (const char* verb : {"check", "plan", "run"}) {
    CAPTURE(verb);
    std::vector<std::string> arguments{verb, "same.toml"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto output = checked_error(scratch.at(arguments, no_data), 2, line);
    CHECK(output.out == "");
  }
  CHECK(scratch.at({"check", "same.toml", "--file-only"}, no_data).out == "same.toml: ok, 1 run\n");
}

}  // namespace

TEST_CASE("check, plan and run refuse missing data, and name --data and TRAINYARD_DATA") {
  const Scratch scratch;
  scratch.write("same.toml", mnist_file());
  const std::string advice = "set --data DIR or TRAINYARD_DATA";
  all_refuse(scratch, "data set \"mnist\" has no folder");
  all_refuse(scratch, advice);
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"nowhere\"\n"));
  all_refuse(scratch, "data set \"mnist\" was not found in nowhere");
  all_refuse(scratch, advice);
  all_refuse(scratch, "data set \"mnist\" was not found in elsewhere, nowhere", {"--data", "elsewhere"});
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"synthetic\"\n"));
  CHECK(scratch.at({"check", "same.toml"}, no_data).code == 0);
}

TEST_CASE("like run, check finds real data by --data, by TRAINYARD_DATA and by [data]") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch scratch;
  scratch.write("same.toml", mnist_file());
  CHECK(scratch.at({"check", "same.toml", "--data", data}, no_data).code == 0);
  CHECK(scratch.at({"check", "same.toml"}, {{"TRAINYARD_DATA", data}}).code == 0);
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"" + data + "\"\n"));
  CHECK(scratch.at({"check", "same.toml"}, no_data).code == 0);
}

TEST_CASE("check, plan and run refuse more training samples than the data has") {
  const Scratch scratch;
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"synthetic\"\n"));
  all_refuse(scratch, "train_samples", {"--set", "train_samples=1000000"});
}

TEST_CASE("check, plan and run refuse a missing file of a program") {
  const Scratch scratch;
  scratch.write("arm.sh", shell_arm("epoch 1\nfinish"));
  std::string file = shell_arm_file("[0]", 1, "files = [\"arm.sh\", \"missing.py\"]\n");
  scratch.write("same.toml", file);
  all_refuse(scratch, "missing.py of a strategy cannot be read");
  scratch.write("missing.py", "");
  CHECK(scratch.at({"check", "same.toml"}, no_data).code == 0);
}

TEST_CASE("check, plan and run refuse a missing host file of mpirun") {
  const Scratch scratch;
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"synthetic\"\n[machine]\nlauncher = \"mpi\"\n"
                                        "hosts = \"no-hosts\"\n"));
  all_refuse(scratch, "no-hosts, but there is no such file");
}

TEST_CASE("plan prints a warning on many values of an axis once, with their number") {
  const Scratch scratch;
  scratch.write("axis.toml",
                "name = \"axis\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", \"ddp\", \"mp\"]\n"
                "learning_rate = [0.1, 0.05, 0.01, 0.005]\nseed = { count = 3 }\n"
                "[defaults]\ndataset = \"synthetic-digits\"\ntrain_samples = 100\n"
                "[compare]\nmargins = { accuracy_points = 0.01 }\n");
  const Output planned = scratch.at({"plan", "axis.toml"});
  REQUIRE_MESSAGE(planned.code == 0, planned.err);
  std::size_t warnings = 0;
  for (std::size_t at = 0; (at = planned.err.find("warning: ", at)) != std::string::npos; ++at) ++warnings;
  CHECK_MESSAGE(warnings == 2, planned.err);
  CHECK_MESSAGE(
      contains(planned.err,
               "warning: mlp, learning_rate 0.1 ddp and 7 others: NO CHANGE is unlikely with 3 seeds; "
               "plan 5 or more\n"),
      planned.err);
  CHECK_MESSAGE(contains(planned.err, "warning: mlp, learning_rate 0.1 and 3 others: the accuracy of "),
                planned.err);
  const Output one = scratch.at(
      {"plan", "axis.toml", "--where", "learning_rate=0.1,strategy=single", "--where", "strategy=ddp"});
  CHECK_MESSAGE(contains(one.err, "warning: mlp ddp: NO CHANGE is unlikely with 3 seeds"), one.err);
}
