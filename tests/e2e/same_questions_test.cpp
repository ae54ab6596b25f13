// `check`, `plan` and `run` make the same checks and print the same errors.
#include <fstream>

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
    const Output output = run_trainyard(scratch.path(), arguments, no_data);
    CHECK(output.code == 2);
    CHECK_MESSAGE(contains(output.err, line), output.err);
    CHECK(output.out == "");
  }
  CHECK(run_trainyard(scratch.path(), {"check", "same.toml", "--file-only"}, no_data).out ==
        "same.toml: ok, 1 run\n");
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
  CHECK(run_trainyard(scratch.path(), {"check", "same.toml"}, no_data).code == 0);
}

TEST_CASE("like run, check finds real data by --data, by TRAINYARD_DATA and by [data]") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data; set TRAINYARD_DATA");
    return;
  }
  const Scratch scratch;
  scratch.write("same.toml", mnist_file());
  CHECK(run_trainyard(scratch.path(), {"check", "same.toml", "--data", data}, no_data).code == 0);
  CHECK(run_trainyard(scratch.path(), {"check", "same.toml"}, {{"TRAINYARD_DATA", data}}).code == 0);
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"" + data + "\"\n"));
  CHECK(run_trainyard(scratch.path(), {"check", "same.toml"}, no_data).code == 0);
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
  CHECK(run_trainyard(scratch.path(), {"check", "same.toml"}, no_data).code == 0);
}

TEST_CASE("check, plan and run refuse a missing host file of mpirun") {
  const Scratch scratch;
  scratch.write("same.toml", mnist_file("[data]\nmnist = \"synthetic\"\n[machine]\nlauncher = \"mpi\"\n"
                                        "hosts = \"no-hosts\"\n"));
  all_refuse(scratch, "no-hosts, but there is no such file");
}
