// Runs on a host with GPUs, from the file to the ranks. A fake runner reports the GPUs.
#include <filesystem>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

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
