// Runs on a host with GPUs, from the file to the ranks. A fake runner reports the GPUs. tools/check-gpu with --rehearse, on CPU
// cores, and tools/bundle.
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;
using nlohmann::json;

namespace {

class GpuHost {
 public:
  GpuHost() {
    const std::filesystem::path built = std::filesystem::path(TRAINYARD_PROGRAM).parent_path();
    std::filesystem::create_directory(programs_);
    std::filesystem::copy_file(TRAINYARD_PROGRAM, programs_ / "trainyard");
    std::filesystem::copy_file(built / "trainyard-store", programs_ / "trainyard-store");
    std::filesystem::copy_file(FAKE_RANK, programs_ / "trainyard-runner");
  }
  Output at(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment) const {
    return run_trainyard(scratch_.path(), arguments, environment, (programs_ / "trainyard").string());
  }
  void write(const std::string& machine) const {
    scratch_.write("small.toml", sweep_file(2, R"("single", "ddp")", 1) + "[machine]\n" + machine);
  }

 private:
  Scratch scratch_;
  std::filesystem::path programs_ = scratch_.path() / "programs";
};

}  // namespace

TEST_CASE("one file trains on GPUs if there are any, and the database names them") {
  const GpuHost host;
  host.write("");
  const auto plan =
      checked_output(host.at({"plan", "small.toml"}, {{"FAKE_RANK_GPUS", "2"}}), 0, "cuda:0 cuda:1");
  CHECK(contains(plan.out, "GPUs: cuda:0 NVIDIA H200 (cores "));
  const Output run = host.at({"run", "small.toml", "--no-report"}, {{"FAKE_RANK_GPUS", "2"}});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const std::string sql =
      "SELECT DISTINCT strategy, processor, devices_shared, json_extract(circumstances, '$.nccl') FROM "
      "attempt "
      "JOIN run_summary USING (run_key) ORDER BY strategy";
  CHECK(contains(host.at({"sql", sql, "--format", "csv"}, {}).out,
                 "ddp,NVIDIA H200,0,2.29.7\nsingle,NVIDIA H200,0,2.29.7\n"));
  // On one GPU two ranks share it: other circumstances, and flagged times.
  const Output one = host.at({"run", "small.toml", "--no-report"}, {{"FAKE_RANK_GPUS", "1"}});
  REQUIRE_MESSAGE(one.code == 0, one.err);
  CHECK(contains(one.err, "has 2 ranks on 1 device: its ranks share devices, which takes longer"));
  CHECK(contains(host.at({"sql", sql, "--format", "csv"}, {}).out, "ddp,NVIDIA H200,1,2.29.7\n"));
}

TEST_CASE("two ranks on one GPU with NCCL are refused before launch, with advice") {
  const GpuHost host;
  host.write("communicator = \"nccl\"\n");
  std::map<std::string, std::string> environment{{"FAKE_RANK_GPUS", "1"}};
  const auto refused = checked_error(host.at({"run", "small.toml"}, environment), 2, "small.toml:4:");
  CHECK(contains(refused.err,
                 "ranks 0 and 1 share a GPU, which NCCL supports from version 2.30, and this is 2.29.7"));
  environment["FAKE_RANK_NCCL"] = "2.32.3";
  CHECK(contains(host.at({"plan", "small.toml"}, environment).err, "NCCL_MULTI_RANK_GPU_ENABLE=1"));
  environment["NCCL_MULTI_RANK_GPU_ENABLE"] = "1";
  const Output run = host.at({"run", "small.toml", "--no-report"}, environment);
  CHECK_MESSAGE(run.code == 0, run.err);
}

TEST_CASE("elastic replicas never share a GPU, so NCCL can connect them") {
  const GpuHost host;
  host.write("communicator = \"nccl\"\n[strategy.ddp]\nmin_replicas = 1\n");
  const std::vector<std::string> run = {"run",     "small.toml",  "--no-report", "--set", "checkpoint=epoch",
                                        "--where", "strategy=ddp"};
  const Output one = host.at(run, {{"FAKE_RANK_GPUS", "1"}});
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK_FALSE(contains(one.err, "share"));
  const std::string sql = "SELECT world_size, launch ->> '$.membership.cause' FROM attempt ORDER BY attempt";
  CHECK(contains(host.at({"sql", sql, "--format", "csv"}, {}).out,
                 "1,\"1 of 2 replicas: there is 1 device, not 2\"\n"));
}

TEST_CASE("accelerator \"cuda\" fails without a GPU, and \"cpu\" uses the CPU even with GPUs") {
  const GpuHost host;
  host.write("accelerator = \"cuda\"\n");
  checked_error(host.at({"run", "small.toml"}, {}), 2,
                "accelerator` is \"cuda\", but trainyard-runner was built for the CPU only");
  host.write("accelerator = \"cpu\"\n");
  const Output plan = host.at({"plan", "small.toml"}, {{"FAKE_RANK_GPUS", "2"}});
  CHECK_MESSAGE(plan.code == 0, plan.err);
  CHECK_FALSE(contains(plan.out, "cuda"));
}

TEST_CASE("check reports the same machine problems as run") {
  const GpuHost host;
  const auto check = [&](const std::string& machine, const char* gpus, std::vector<std::string> more = {}) {
    host.write(machine);
    more.insert(more.begin(), {"check", "small.toml"});
    return host.at(more, {{"FAKE_RANK_GPUS", gpus}});
  };
  checked_output(check("", "2"), 0, "small.toml: ok, 2 runs, on cuda:0 (NVIDIA H200), cuda:1 (NVIDIA H200)");
  CHECK(contains(check("", "1").err, "has 2 ranks on 1 device: its ranks share devices"));
  checked_error(check("accelerator = \"cuda\"\n", "0"), 2, "accelerator` is \"cuda\", but no GPU is visible");
  checked_error(check("communicator = \"nccl\"\n", "1"), 2, "ranks 0 and 1 share a GPU");
  checked_error(check("accelerator = \"cpu\"\n", "1", {"--set", "precision=tf32"}), 2,
                "precision \"tf32\" needs a GPU");
  CHECK(check("accelerator = \"cuda\"\n", "0", {"--file-only"}).out == "small.toml: ok, 2 runs\n");
}

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
