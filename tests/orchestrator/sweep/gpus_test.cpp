// GPUs as devices: which are used, which ranks use them, errors before launch, and the end of ranks that do
// not react.
#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/sweep/collector.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

using Cores = std::vector<int>;

std::vector<Gpu> gpus(int count) {
  std::vector<Gpu> all;
  all.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all.push_back({i, "NVIDIA H200", 0, "GPU-" + std::to_string(i)});
  return all;
}

experiments::Machine machine(const std::string& accelerator) {
  experiments::Machine machine;
  machine.accelerator = accelerator;
  return machine;
}

std::vector<std::string> assignments(const std::vector<Device>& devices) {
  std::vector<std::string> texts;
  for (const Device& device : devices) {
    std::string text = device.name + " on";
    for (const int core : device.cores) text += " " + std::to_string(core);
    texts.push_back(text);
  }
  return texts;
}
using Seats = std::vector<std::string>;

experiments::Circumstances with_nccl() {
  experiments::Circumstances here;
  here.processor = "EPYC";
  here.nccl = "2.29.7";
  return here;
}

std::string transport_error(const experiments::Run& run, int count, const std::string& nccl) {
  experiments::Experiment experiment;
  experiment.machine.communicator = "nccl";
  experiment.runs = {run};
  experiment.strategy_locations = {{"bench.toml", 7, 1}};
  const auto devices = count == 0 ? divide_cores({0, 1}, 2) : choose_gpus(gpus(count), {0, 1}, std::nullopt);
  return tests::user_error_of([&] { check_transport(experiment, devices, nccl); });
}

}  // namespace

TEST_CASE("tf32 on cores is an error before anything runs, with its place in the file") {
  experiments::Experiment experiment;
  experiments::Run run;
  run.precision = "tf32";
  experiment.runs = {run};
  experiment.strategy_locations = {{"bench.toml", 7, 1}};
  CHECK_THROWS_WITH_AS(check_precision(experiment, divide_cores({0, 1}, 2)),
                       doctest::Contains("bench.toml:7:1"), UserError);
  CHECK_NOTHROW(check_precision(experiment, choose_gpus(gpus(1), {0, 1}, std::nullopt)));
  experiment.runs.front().precision = "float16";
  CHECK_NOTHROW(check_precision(experiment, divide_cores({0, 1}, 2)));
}

TEST_CASE("a host with GPUs trains on all of them, unless the file chooses otherwise") {
  const auto names = [](const std::string& accelerator, int count, std::optional<int> wanted) {
    auto where = machine(accelerator);
    where.devices = wanted;
    std::string text;
    for (const auto& device : host_devices(where, gpus(count), "13.0", {0, 1, 2, 3}))
      text += device.name + " ";
    return text;
  };
  CHECK(names("auto", 3, std::nullopt) == "cuda:0 cuda:1 cuda:2 ");
  CHECK(names("auto", 3, 2) == "cuda:0 cuda:1 ");
  CHECK(names("cuda", 1, std::nullopt) == "cuda:0 ");
  CHECK(names("cpu", 3, std::nullopt) == "cpu:0 cpu:1 cpu:2 cpu:3 ");
  CHECK(names("auto", 0, std::nullopt) == "cpu:0 cpu:1 cpu:2 cpu:3 ");
}

TEST_CASE("the error for missing GPUs names what is missing") {
  const auto ask = [](int count, const std::string& cuda, std::optional<int> wanted) {
    auto where = machine("cuda");
    where.devices = wanted;
    host_devices(where, gpus(count), cuda, {0});
  };
  CHECK_THROWS_WITH_AS(ask(0, "", std::nullopt), doctest::Contains("built for the CPU only"), UserError);
  CHECK_THROWS_WITH_AS(ask(0, "13.0", std::nullopt), doctest::Contains("no GPU is visible"), UserError);
  CHECK_THROWS_WITH_AS(ask(1, "13.0", 2), doctest::Contains("is 2, but there is 1 GPU"), UserError);
}

TEST_CASE("the cores of the host are divided among its GPUs, and those of a GPU among its ranks") {
  const auto two = choose_gpus(gpus(2), {0, 1, 2, 3, 4, 5, 6, 7}, std::nullopt);
  CHECK(assignments(two) == Seats{"cuda:0 on 0 1 2 3", "cuda:1 on 4 5 6 7"});
  CHECK(assignments(place_ranks({.replicas = 2, .stages = 1}, two)) ==
        Seats{"cuda:0 on 0 1 2 3", "cuda:1 on 4 5 6 7"});
  // Device (r + s) mod 2, as on cores: (0,0) (0,1) (1,0) (1,1).
  CHECK(assignments(place_ranks({.replicas = 2, .stages = 2}, two)) ==
        Seats{"cuda:0 on 0 1", "cuda:1 on 4 5", "cuda:1 on 6 7", "cuda:0 on 2 3"});
  const auto one = choose_gpus(gpus(1), {0, 1}, std::nullopt);
  CHECK(assignments(place_ranks({.replicas = 3, .stages = 1}, one)) ==
        Seats{"cuda:0 on 0", "cuda:0 on 1", "cuda:0 on 0"});
  CHECK(assignments(choose_gpus(gpus(3), {4, 5}, std::nullopt)) ==
        Seats{"cuda:0 on 4", "cuda:1 on 5", "cuda:2 on 4"});
}

TEST_CASE("a rank on a GPU has one thread, however many cores are free, so that arms are comparable") {
  experiments::Experiment experiment;
  experiment.runs = {mlp_run("single", 1, 0), mlp_run("ddp", 2, 0)};
  const auto plan = make_plan(experiment, choose_gpus(gpus(1), {0, 1, 2, 3}, std::nullopt), {}, nullptr);
  CHECK_FALSE(plan.runs[0].devices_shared);
  CHECK(plan.runs[1].devices_shared);
  CHECK(plan.runs[1].circumstances.ranks_per_device == 2);
  for (const auto& run : plan.runs) CHECK(run.circumstances.threads_per_rank == 1);
}

TEST_CASE("circumstances have the GPU model and NCCL, or on cores the CPU and no NCCL") {
  const auto here = with_nccl();
  CHECK(on_devices(here, divide_cores({0, 1}, 2)).nccl.empty());
  CHECK(on_devices(here, divide_cores({0, 1}, 2)).processor == "EPYC");
  CHECK(on_devices(here, choose_gpus(gpus(2), {0}, std::nullopt)).processor == "NVIDIA H200");
  CHECK(on_devices(here, choose_gpus(gpus(2), {0}, std::nullopt)).nccl == "2.29.7");
  auto mixed = choose_gpus(gpus(2), {0}, std::nullopt);
  mixed[0].gpu = "NVIDIA A100";
  CHECK(on_devices(here, mixed).processor == "NVIDIA A100, NVIDIA H200");
}

TEST_CASE("NCCL is refused before launch if two ranks of a dimension share a GPU, with the strategy's line") {
  const std::string error = transport_error(mlp_run("ddp", 2, 0), 1, "2.29.7");
  CHECK(
      contains(error, "bench.toml:7:1: strategy \"ddp\": communicator \"nccl\": ranks 0 and 1 share a GPU"));
  CHECK(contains(transport_error(mlp_run("ddp", 2, 0), 0, ""), "ranks train on CPU cores"));
  CHECK(transport_error(mlp_run("ddp", 2, 0), 2, "2.29.7").empty());
  // Four ranks on two GPUs, two on each. No two ranks of one stage or one replica share a GPU.
  CHECK(transport_error(mesh_run(0), 2, "2.29.7").empty());
  CHECK_FALSE(transport_error(mesh_run(0), 1, "2.29.7").empty());
  CHECK(transport_error(mlp_run("single", 1, 0), 1, "2.29.7").empty());
}

TEST_CASE("on a cluster a run is planned for GPUs, and its ranks find out which") {
  auto where = machine("auto");
  where.launcher = "slurm";
  where.gpus_per_task = 1;
  const auto slot = launcher_slots(where).front();
  CHECK_FALSE(slot.gpu.empty());
  CHECK(slot.cores.empty());
  const auto here = with_nccl();
  CHECK(elsewhere(here, where).nccl == "2.29.7");
  CHECK(elsewhere(here, where).processor == "GPUs as the launcher chose");
  where.accelerator = "cpu";
  CHECK(launcher_slots(where).front().gpu.empty());
  CHECK(elsewhere(here, where).nccl.empty());
}

TEST_CASE("sbatch and srun request one GPU per task") {
  auto where = machine("auto");
  where.launcher = "slurm";
  where.gpus_per_task = 1;
  const std::string asked = "--gpus-per-task=1";
  const auto job = sbatch_arguments(where, "trainyard-x", "/shared", 2, "/yard/slurm-job.sh", {"rank"});
  const auto script = std::find(job.begin(), job.end(), "/yard/slurm-job.sh");
  CHECK(std::count(job.begin(), script, asked) == 1);
  CHECK(std::count(script, job.end(), asked) == 1);
  const auto step = srun_arguments(where, "7", "trainyard-x", 2, {"rank"});
  CHECK(std::count(step.begin(), step.end(), asked) == 1);
}

// Reports compare the names of devices.
TEST_CASE("a launch on a cluster has a different GPU name for each rank, and no cores") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.experiment.machine.launcher = "slurm";
  bench.experiment.machine.gpus_per_task = 1;
  bench.devices = launcher_slots(bench.experiment.machine);
  CHECK(bench.sweep().finished == 1);
  const auto launch = experiments::read_launch(bench.attempt(0) / "run.json");
  CHECK(launch.devices == std::vector<std::string>{"cuda of task 0", "cuda of task 1"});
  CHECK(launch.cores.empty());
}

TEST_CASE("a sweep on GPUs names them in each launch, and pins ranks to their part of the cores") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  const int core = usable_cores().front();
  bench.devices = choose_gpus(gpus(1), {core}, std::nullopt);
  CHECK(bench.sweep().finished == 1);
  const auto launch = experiments::read_launch(bench.attempt(0) / "run.json");
  CHECK(launch.devices == std::vector<std::string>{"cuda:0", "cuda:0"});
  CHECK(launch.cores == std::vector<Cores>{{core}, {core}});
  CHECK(launch.devices_shared);
  const std::string surroundings = text_of(bench.attempt(0) / "surroundings-1");
  CHECK(contains(surroundings, "\nOMP_NUM_THREADS=1\n"));
  CHECK(contains(surroundings, "\ncores=" + std::to_string(core) + ",\n"));
}

TEST_CASE("a user program sees only the GPUs that its run has leased") {
  auto run = mlp_run("mine", 2, 0);
  run.strategy.kind = "foreign";
  run.strategy.command = {FAKE_RANK};
  SweepFixture bench({run});
  auto all = choose_gpus(gpus(3), {usable_cores().front()}, std::nullopt);
  bench.devices = {all[1], all[2]};
  CHECK(bench.sweep().finished == 1);
  CHECK(contains(text_of(bench.attempt(0) / "surroundings-0"), "\nCUDA_VISIBLE_DEVICES=GPU-1,GPU-2\n"));
}

// A rank that waits for its dead peer inside a kernel does not react to SIGTERM. It is killed.
TEST_CASE("a rank on a GPU is ended if its peer dies or hangs, even if it ignores signals") {
  for (const std::string peer : {"die once 0 hangs", "deaf"}) {
    CAPTURE(peer);
    SweepFixture bench({mlp_run("ddp", 2, 0)});
    bench.devices = choose_gpus(gpus(2), {usable_cores().front()}, std::nullopt);
    if (peer == "deaf") bench.options.progress_timeout_seconds = 3;
    bench.on_message("0", "deaf");
    bench.on_message("1", peer);
    CHECK(contains(bench.only_failure().first_error,
                   peer == "deaf" ? "no progress for 3 s" : "the cat sat on the keyboard"));
    CHECK_FALSE(alive(pid_in(bench.attempt(0) / "hanging-0")));
  }
}

// The message of c10d's watchdog, which ends a process after a timeout: PyTorch 2.13, ProcessGroupNCCL.cpp.
TEST_CASE("the error of a rank that NCCL's watchdog has ended is the line of the watchdog") {
  const TemporaryFolder folder;
  const auto log = folder.path / "rank-0.log";
  std::ofstream(log)
      << "[rank0]:[E1121 10:00:00.000 ProcessGroupNCCL.cpp:700] [Rank 0] Watchdog caught collective "
         "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 300001 milliseconds\n"
         "terminate called after throwing an instance of 'c10::DistBackendError'\n"
         "  what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n"
         "  0x7f00 <unknown function> in libtorch_cuda.so\n";
  CHECK(last_error_line(log) ==
        "what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)");
}
