// run.json, circumstances, comparisons and progress files.
#include "experiments/protocol/launch.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include <doctest/doctest.h>

#include "base/error.h"
#include "experiments/design/experiment.h"
#include "experiments/protocol/crc32c.h"
#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "experiments/protocol/seal.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

Circumstances example_circumstances() {
  return {.host = "yard",
          .processor = "Some CPU",
          .threads_per_rank = 1,
          .ranks_per_device = 1,
          .release = "0.1.0 Release",
          .libtorch = "2.13.0",
          .nccl = ""};
}

// True if another write is due right after one. Tries again if a busy machine takes too long between the two.
bool due_at_once(ProgressWriter& writer, const Progress& progress) {
  while (true) {
    const auto begin = std::chrono::steady_clock::now();
    writer.write(progress);
    const bool due = writer.due();
    if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(200)) return due;
  }
}

Launch example_launch(const std::filesystem::path& records) {
  Launch launch;
  launch.key = "3f9a1c20b7de";
  launch.attempt = 2;
  launch.records = records;
  launch.experiment = "demo";
  launch.run.model = "mlp";
  launch.run.strategy = {.name = "ddp", .kind = "ddp", .replicas = 2, .stages = 1};
  launch.run.seed = 7;
  launch.run.axes = {{"strategy", std::string("ddp")}};
  launch.devices = {"cpu:0", "cpu:1"};
  launch.cores = {{0}, {1}};
  launch.devices_shared = true;
  launch.probe = true;
  launch.circumstances = example_circumstances();
  launch.created = "2026-11-20T09:30:12.345Z";
  return launch;
}

std::string error_of(const std::filesystem::path& file) {
  return tests::user_error_of([&] { read_launch(file); });
}

}  // namespace

TEST_CASE("run.json survives writing and reading, and no other file is left in the folder") {
  const tests::ScratchFolder folder;
  const Launch launch = example_launch(folder.path());
  write_launch(launch);
  write_launch(launch);  // replaces an older one
  const Launch back = read_launch(folder / run_file_name);
  CHECK(to_json(back) == to_json(launch));
  CHECK(back.run == launch.run);
  CHECK(back.circumstances == launch.circumstances);
  CHECK(back.cores == launch.cores);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("run.json has the replicas of an attempt that has fewer than its run, and the run keeps its own") {
  const tests::ScratchFolder folder;
  Launch launch = example_launch(folder.path());
  CHECK_FALSE(to_json(launch).contains("membership"));
  launch.run.strategy.replicas = 3;
  launch.membership = Membership{2, "2 of 3 replicas: rank 2 was killed in attempt 1"};
  write_launch(launch);
  const Launch back = read_launch(folder / run_file_name);
  CHECK(back.membership == launch.membership);
  CHECK(back.run == launch.run);
  CHECK(back.strategy().replicas == 2);
  CHECK(to_json(back).at("world_size") == 2);
  CHECK(to_json(back).at("work").at("strategy").at("replicas") == 3);
}

TEST_CASE("the seal of run.json follows the bytes that it had before, and a flipped bit is an error") {
  const tests::ScratchFolder folder;
  const Launch launch = example_launch(folder.path());
  write_launch(launch);
  const auto file = folder / run_file_name;
  const std::string text = tests::read_text(file), before = to_json(launch).dump(2);
  const std::string same = before.substr(0, before.size() - 2);  // without the brace and its newline
  CHECK(text == same + ",\n  \"crc\": \"" + hexadecimal(crc32c(same)) + "\"\n}\n");
  for (std::size_t place = 0; place + 1 < text.size(); place += 11) {
    std::string flipped = text;
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << (place % 8)));
    tests::write_text(file, flipped);
    CAPTURE(place);
    CHECK(error_of(file) != "");
  }
}

TEST_CASE("a run.json without a seal is refused") {
  const tests::ScratchFolder folder;
  const auto file = folder / run_file_name;
  tests::write_text(file, to_json(example_launch(folder.path())).dump(2));
  CHECK(error_of(file).find("has no checksum (crc)") != std::string::npos);
}

TEST_CASE("a run.json that is not a plain file is refused at once") {
  const tests::ScratchFolder folder;
  const auto file = folder / run_file_name;
  std::filesystem::create_symlink("/dev/zero", file);
  CHECK(error_of(file).find("check that it is a plain file") != std::string::npos);
}

TEST_CASE("run.json has the members that foreign programs rely on") {
  const auto json = to_json(example_launch("/records"));
  CHECK(json.at("v") == 1);
  CHECK(json.at("run") == "3f9a1c20b7de");
  CHECK(json.at("attempt") == 2);
  CHECK(json.at("seed") == 7);
  CHECK(json.at("epochs") == 10);
  CHECK(json.at("axes").at("strategy") == "ddp");
  CHECK(json.at("records") == "/records");
  CHECK(json.at("world_size") == 2);
  CHECK(json.at("work").at("model") == "mlp");
  CHECK(json.at("circumstances_hash") == circumstances_hash(example_circumstances()));
}

TEST_CASE("run.json has the number of possible retries, if there are any") {
  Launch launch = example_launch("/records");
  CHECK(!to_json(launch).contains("retries_left"));
  CHECK(launch_from_json(to_json(launch)).retries_left == 0);
  launch.retries_left = 2;
  CHECK(launch_from_json(to_json(launch)).retries_left == 2);
}

TEST_CASE("run.json has the epoch to resume from and the checkpoint folder, if there are any") {
  Launch launch = example_launch("/records");
  for (const char* member : {"checkpoints", "resumes_attempt", "resumes_after_epoch"})
    CHECK(!to_json(launch).contains(member));
  CHECK(!launch_from_json(to_json(launch)).resumes.has_value());
  launch.checkpoints = "/checkpoints";
  launch.resumes = Resumes{1, 4};
  CHECK(to_json(launch).at("checkpoints") == "/checkpoints");
  CHECK(to_json(launch).at("resumes_attempt") == 1);
  CHECK(to_json(launch).at("resumes_after_epoch") == 4);
  const Launch back = launch_from_json(to_json(launch));
  CHECK(back.resumes == launch.resumes);
  CHECK(back.checkpoints == launch.checkpoints);
}

TEST_CASE("a damaged run.json is an error that names the file and the fault") {
  const tests::ScratchFolder folder;
  const auto file = folder / run_file_name;
  CHECK(error_of(file).find("cannot read the run file") != std::string::npos);
  tests::write_text(file, "{\"v\":1,");
  CHECK(error_of(file).find("not JSON at byte 8") != std::string::npos);
  CHECK(error_of(file).find(file.string()) == 0);
  tests::write_text(file, sealed("{\"v\":1}"));
  CHECK(error_of(file).find("key 'run' not found") != std::string::npos);
  tests::write_text(file, sealed("{\"v\":2}"));
  CHECK(error_of(file).find("version 2") != std::string::npos);
  tests::write_text(file, "[]");
  CHECK(error_of(file).find(file.string()) == 0);
}

TEST_CASE("writing run.json into a missing folder is an error") {
  CHECK_THROWS_AS(write_launch(example_launch("/nonexistent")), std::system_error);
}

// printf '%s' '{"host":"yard",…}' | sha256sum
TEST_CASE("the hash of circumstances covers all of them and never changes") {
  CHECK(
      to_json(example_circumstances()).dump() ==
      R"({"host":"yard","libtorch":"2.13.0","nccl":"","processor":"Some CPU","ranks_per_device":1.0,"release":"0.1.0 Release","threads_per_rank":1})");
  CHECK(circumstances_hash(example_circumstances()) == "4ea76e9f5837");
  Circumstances other = example_circumstances();
  other.ranks_per_device = 2;
  CHECK(circumstances_hash(other) != circumstances_hash(example_circumstances()));
}

TEST_CASE("a requested communicator is a circumstance") {
  Circumstances asked = example_circumstances();
  asked.communicator = "gloo";
  CHECK(circumstances_hash(asked) != circumstances_hash(example_circumstances()));
  CHECK(circumstances_from_json(to_json(asked)) == asked);
}

TEST_CASE("build and environment are circumstances, and differences have both values") {
  Circumstances one = example_circumstances();
  one.build = "3fa9c1d20e77";
  one.environment = {{"ATEN_CPU_CAPABILITY", "default"}, {"MKL_NUM_THREADS", "4"}};
  CHECK(circumstances_from_json(to_json(one)) == one);
  CHECK(circumstances_hash(one) != circumstances_hash(example_circumstances()));
  CHECK(differing_settings(one, one).empty());
  Circumstances other = one;
  other.environment = {{"MKL_NUM_THREADS", "2"}};
  other.build = "";
  std::vector<std::string> texts;
  for (const SettingDifference& difference : differing_settings(one, other))
    texts.push_back(to_text(difference));
  CHECK(texts == std::vector<std::string>{"build not recorded against 3fa9c1d20e77",
                                          "ATEN_CPU_CAPABILITY not set against default",
                                          "MKL_NUM_THREADS 2 against 4"});
  other = one;
  other.threads_per_rank = 7;  // arms may differ in it
  CHECK(differing_settings(one, other).empty());
}

TEST_CASE("variables of LibTorch, its libraries and the allocator may change the speed, others do not") {
  for (const char* name : {"ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_VERBOSE", "MKL_NUM_THREADS",
                           "OMP_PROC_BIND", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "MALLOC_ARENA_MAX",
                           "LD_PRELOAD", "NCCL_ALGO", "PYTORCH_CUDA_ALLOC_CONF"})
    CHECK_MESSAGE(may_change_speed(name), name);
  for (const char* name : {"OMP_NUM_THREADS", "PATH", "HOME", "OMP", "TRAINYARD_RUN"})
    CHECK_FALSE_MESSAGE(may_change_speed(name), name);
}

TEST_CASE("a comparison survives its JSON") {
  Compare compare{.axis = "batch",
                  .baseline = "64",
                  .pair = {},
                  .margins = {},
                  .alpha = 0.01,
                  .seeds = SeedRange{4, 20},
                  .differs = {"epochs"}};
  compare.margins = {.time = 1.5, .loss = {.ratio = 1.25, .absolute = 0.5}, .accuracy_points = 2};
  const auto json = to_json(compare);
  CHECK(json.at("margins").at("loss").at("ratio") == 1.25);
  const Compare back = compare_from_json(nlohmann::json::parse(json.dump()));
  CHECK(to_json(back) == json);
  CHECK(back.seeds == SeedRange{4, 20});
  CHECK(back.pair.empty());
  CHECK_THROWS_AS(compare_from_json({{"axis", "batch"}}), InternalError);
}

TEST_CASE("progress survives writing and reading, with a stamp") {
  const tests::ScratchFolder folder;
  const auto file = folder / rank_progress_name(0);
  CHECK_FALSE(read_progress(file).has_value());
  ProgressWriter writer(file);
  CHECK(writer.due());
  const Progress now{.phase = Phase::train,
                     .epoch = 2,
                     .epochs = 10,
                     .step = 1ull << 40,
                     .steps = 63,
                     .loss = 0.25,
                     .accuracy = std::numeric_limits<double>::quiet_NaN()};
  CHECK_FALSE(due_at_once(writer, now));
  CHECK(std::filesystem::file_size(file) == 64);
  const auto read = read_progress(file);
  REQUIRE(read.has_value());
  CHECK(read->phase == Phase::train);
  CHECK(read->epoch == 2);
  CHECK(read->epochs == 10);
  CHECK(read->step == 1ull << 40);
  CHECK(read->steps == 63);
  CHECK(read->loss == 0.25);
  CHECK(std::isnan(read->accuracy));
  CHECK(read->stamp > 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(210));
  CHECK(writer.due());
}

TEST_CASE("the layout of a progress file is the documented one") {
  const tests::ScratchFolder folder;
  ProgressWriter(folder / "p")
      .write({.phase = Phase::test, .epoch = 258, .epochs = 3, .step = 4, .steps = 5, .loss = 1});
  const std::string bytes = tests::read_text(folder / "p");
  CHECK(bytes.substr(0, 12) == std::string("TYP1\x03\0\0\0\x02\x01\0\0", 12));
  CHECK(bytes.substr(32, 8) == std::string("\0\0\0\0\0\0\xf0\x3f", 8));  // 1.0
}

TEST_CASE("a short, torn or foreign progress file is ignored") {
  const tests::ScratchFolder folder;
  const auto file = folder / "p";
  ProgressWriter(file).write({});
  const std::string whole = tests::read_text(file);
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    std::string torn = whole;
    torn[byte] = static_cast<char>(torn[byte] ^ 0x10);
    tests::write_text(file, torn);
    CHECK_FALSE(read_progress(file).has_value());
    tests::write_text(file, whole.substr(0, byte));
    CHECK_FALSE(read_progress(file).has_value());
  }
}

TEST_CASE("a rank that cannot write its progress continues") {
  ProgressWriter writer("/nonexistent/progress");
  writer.write({});
  CHECK_FALSE(writer.due());
}

TEST_CASE("an expectation survives its JSON, has a text, and never holds for NaN") {
  const Expectation accuracy{
      .model = "mlp", .phase = "test", .metric = "accuracy", .at_least = 0.9, .at_most = std::nullopt};
  const Expectation loss{
      .model = "seq2seq", .phase = "validation", .metric = "loss", .at_least = 1, .at_most = 2.5};
  for (const Expectation& each : {accuracy, loss}) CHECK(expectation_from_json(to_json(each)) == each);
  CHECK(to_text(accuracy) == "mlp: test_accuracy >= 0.9");
  CHECK(to_text(loss) == "seq2seq: validation_loss >= 1 and <= 2.5");
  CHECK(holds(accuracy, 0.9));
  CHECK_FALSE(holds(accuracy, 0.89));
  CHECK(holds(loss, 2.5));
  CHECK_FALSE(holds(loss, 0.5));
  CHECK_FALSE(holds(loss, 2.6));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(holds(accuracy, nan));
  CHECK_FALSE(holds(loss, nan));
  CHECK_THROWS_AS(expectation_from_json(nlohmann::json::object()), InternalError);
}
