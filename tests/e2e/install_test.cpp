// An installation is self-contained: its programs find one another and LibTorch.
#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

#include "tests/e2e/support/program.h"
#include "tests/e2e/support/sweep_file.h"

using namespace trainyard::e2e;

TEST_CASE("installed programs train a sweep and make its report") {
  const Scratch scratch;
  const auto prefix = scratch.path() / "prefix";
  const std::string install = "cmake --install " TRAINYARD_BUILD " --prefix " + prefix.string() + " > " +
                              (scratch.path() / "install.log").string();
  REQUIRE(std::system(install.c_str()) == 0);
  const auto program = (prefix / "bin/trainyard").string();
  CHECK(run_trainyard(scratch.path(), {"--version"}, {}, program).out.rfind("trainyard 0.", 0) == 0);
  scratch.write("small.toml", sweep_file(1, R"("single", "ddp")", 1));
  const auto output = run_trainyard(scratch.path(), {"run", "small.toml"}, {}, program);
  CHECK_MESSAGE(output.code == 0, output.err);
  CHECK(std::filesystem::exists(scratch.path() / "yard/reports/small/index.html"));
  CHECK(std::filesystem::exists(prefix / "share/trainyard/experiments/demo.toml"));
}
