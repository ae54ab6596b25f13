// tools/check-gpu with --rehearse, on CPU cores, and tools/bundle.
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::e2e;
using nlohmann::json;

namespace {

Output check_gpu(const Scratch& scratch, std::vector<std::string> more) {
  const std::string folder = scratch.path().string();
  std::vector<std::string> arguments{"--rehearse",
                                     "--build",
                                     TRAINYARD_BUILD,
                                     "--python",
                                     TRAINYARD_PYTHON,
                                     "--yard",
                                     folder + "/kept/yard",
                                     "--json",
                                     folder + "/found.json",
                                     "--models",
                                     "mlp",
                                     "--patience",
                                     "10"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return scratch.at(arguments, {}, TRAINYARD_SOURCE "/tools/check-gpu");
}

json found(const Scratch& scratch) {
  std::ifstream file(scratch.path() / "found.json");
  REQUIRE(file);
  return json::parse(file);
}

bool no_python() {
  if (!std::string(TRAINYARD_PYTHON).empty()) return false;
  MESSAGE("skipped: no Python with torch was found when this was configured");
  return true;
}

}  // namespace

TEST_CASE("check-gpu, rehearsed on cores, trains the matrix, checks parity and compares with PyTorch") {
  if (no_python()) return;
  const Scratch scratch;
  const Output output =
      check_gpu(scratch, {"--styles", "index", "--parts", "build", "matrix", "nccl", "benchmark"});
  CAPTURE(output.out);
  CAPTURE(output.err);
  CHECK(output.code == 0);
  const json results = found(scratch);
  CHECK(results.at("rehearsal") == true);
  CHECK(results.at("device") == "CPU cores");
  for (const char* part : {"build", "matrix", "nccl", "benchmark"})
    CHECK(results.at("parts").at(part).at("status") == "done");
  const json& matrix = results.at("parts").at("matrix").at("found");
  REQUIRE(matrix.at("runs").size() == 3);  // single, ddp, and two replicas of two stages
  for (const json& run : matrix.at("runs")) {
    CHECK(run.at("status") == "finished");
    CHECK(run.at("train_loss") > 0);
    CHECK(run.at("transport") == (run.at("strategy") == "single" ? "none" : "shared memory"));
  }
  CHECK(results.at("parts").at("nccl").at("found").contains("left_out"));
  REQUIRE(matrix.at("parity").size() == 3);
  for (const json& row : matrix.at("parity")) {
    CHECK(row.at("holds") == true);
    CHECK(row.at("steps") > 0);
  }
  const json& against = results.at("parts").at("benchmark").at("found").at(0).at("against").at("index");
  CHECK(against.at("ratio") > 0);
  CHECK(against.at("counts") == true);
  CHECK(against.at("first_epoch_differs") < 1e-3);
  CHECK(contains(output.out, "PyTorch index"));
}

TEST_CASE("if a part of check-gpu fails, the error is reported and the later parts still run") {
  if (no_python()) return;
  const Scratch scratch;
  const Output output = check_gpu(scratch, {"--styles", "no-such-style", "--parts", "benchmark", "matrix"});
  CAPTURE(output.out);
  CHECK(output.code == 1);
  const json results = found(scratch);
  CHECK(results.at("parts").at("benchmark").at("status") == "failed");
  CHECK(contains(results.at("parts").at("benchmark").at("error").get<std::string>(), "no-such-style"));
  CHECK(results.at("parts").at("matrix").at("status") == "done");
}

TEST_CASE(
    "a bundle has the headers, libraries and CMake packages that the build needs, and prints its size") {
  const Scratch scratch;
  const std::filesystem::path bundle = scratch.path() / "bundle";
  const Output output = scratch.at({"--output", bundle.string()}, {}, TRAINYARD_SOURCE "/tools/bundle");
  CAPTURE(output.err);
  CHECK(output.code == 0);
  CHECK(contains(output.out, bundle.string() + ": "));
  for (const char* header : {"boost/math/distributions/students_t.hpp", "boost/version.hpp", "toml++/toml.h",
                             "nlohmann/json.hpp", "openssl/opensslconf.h", "png.h"}) {
    CAPTURE(header);
    CHECK(std::filesystem::exists(bundle / "include" / header));
  }
  CHECK_FALSE(std::filesystem::exists(bundle / "include" / "boost" / "asio.hpp"));
  // Paths inside the packages point into the bundle.
  const std::string doctest_package = tests::read_text(bundle / "lib/cmake/doctest/doctestTargets.cmake");
  CHECK(contains(doctest_package, "_IMPORT_PREFIX"));
  CHECK_FALSE(contains(doctest_package, "\"/usr\""));
  CHECK(std::filesystem::exists(bundle / "share" / "cmake" / "nlohmann_json"));
  CHECK(scratch.at({"--outptu", "x"}, {}, TRAINYARD_SOURCE "/tools/bundle").code == 2);
}
