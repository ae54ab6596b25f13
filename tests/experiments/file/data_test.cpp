// Finding the data of an experiment.
#include <cstdlib>

#include <doctest/doctest.h>

#include "experiments/file/file.h"
#include "models/datasets/datasets.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace {

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

// Writes a small test part of MNIST: `count` images of one grey value.
void write_mnist(const std::filesystem::path& folder, std::uint32_t count, char grey) {
  tests::write_text(folder / "t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(count) +
                                                           big_endian(28) + big_endian(28) +
                                                           std::string(std::size_t{count} * 784, grey));
  tests::write_text(folder / "t10k-labels-idx1-ubyte",
                    big_endian(0x801) + big_endian(count) + std::string(count, '\3'));
}

// Loads an experiment as if its file were in `folder`.
Experiment in_folder(const std::filesystem::path& folder, const std::string& rest) {
  Loaded result = load_text("name = \"x\"\n" + rest, folder / "f.toml");
  REQUIRE(result.experiment.has_value());
  return std::move(*result.experiment);
}

const std::string on_mnist = "[matrix]\nmodel = [\"mlp\"]\nseed = [0, 1]\n";

std::string error_of(Experiment experiment, const std::optional<std::filesystem::path>& search) {
  return user_error_of([&] { resolve_data(experiment, search); });
}

}  // namespace

TEST_CASE("a folder of [data] is relative to the file, and --data overrides it") {
  const tests::ScratchFolder folder;
  write_mnist(folder / "near/mnist", 20, 1);
  write_mnist(folder / "far/mnist", 20, 2);
  Experiment experiment = in_folder(folder.path(), "[data]\nmnist = \"near/mnist\"\n" + on_mnist);
  resolve_data(experiment, {});
  CHECK(experiment.runs[0].data.folder == folder / "near/mnist");
  CHECK(experiment.runs[0].data.source == "mnist");
  CHECK(experiment.runs[0].data.fingerprint ==
        models::facts(models::find_dataset("mnist"), folder / "near/mnist", {}).fingerprint);
  const std::string key = run_key(experiment.runs[0]);
  resolve_data(experiment, {folder / "far"});
  CHECK(experiment.runs[0].data.folder == folder / "far/mnist");
  CHECK(run_key(experiment.runs[0]) != key);
  CHECK(experiment.keys ==
        std::vector<std::string>{run_key(experiment.runs[0]), run_key(experiment.runs[1])});
  resolve_data(experiment, {folder / "nowhere"});  // [data] is used again
  CHECK(run_key(experiment.runs[0]) == key);
}

TEST_CASE("equal content in another folder is the same work") {
  const tests::ScratchFolder folder;
  write_mnist(folder / "a/mnist", 20, 1);
  write_mnist(folder / "b/mnist", 20, 1);
  Experiment experiment = in_folder(folder.path(), on_mnist);
  resolve_data(experiment, {folder / "a"});
  const std::string key = run_key(experiment.runs[0]);
  resolve_data(experiment, {folder / "b"});
  CHECK(run_key(experiment.runs[0]) == key);
}

TEST_CASE("too few training samples for the replicas or for train_samples are an error before launch") {
  const tests::ScratchFolder folder;
  write_mnist(folder / "mnist", 20, 1);
  const std::string ddp = "[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"ddp\"]\n";
  const auto error = [&](const std::string& rest) {
    return error_of(in_folder(folder.path(), ddp + rest), {folder.path()});
  };
  const std::string file = (folder / "f.toml").string();
  CHECK(error("replicas = [16]\n") == "");  // 0.8 of 20 samples
  CHECK(error("replicas = [17]\n") ==
        file +
            ": the run \"mlp ddp seed 0 replicas=17\" has 16 training samples of "
            "mnist, fewer than its 17 replicas; train with more samples or fewer "
            "replicas");
  CHECK(error("[defaults]\ntrain_samples = 17\n") ==
        "train_samples is 17, but the training part of mnist has 16 samples; use at most 16");
}

TEST_CASE("the stand-in is used if the file requests it, and the requested data set is kept") {
  Experiment experiment = in_folder("/nowhere", "data_seed = 3\n[data]\nmnist = \"synthetic\"\n" + on_mnist);
  resolve_data(experiment, {});
  const models::DataChoice& data = experiment.runs[0].data;
  CHECK(data.dataset == "mnist");
  CHECK(data.source == "synthetic-digits");
  CHECK(data.folder.empty());
  CHECK(data.split_seed == 3);
  models::DataChoice seeded;
  seeded.split_seed = 3;
  CHECK(data.fingerprint == models::facts(models::find_dataset("synthetic-digits"), "", seeded).fingerprint);
}

TEST_CASE("a missing data set is an error that names all searched folders") {
  const tests::ScratchFolder folder;
  const Experiment nowhere = in_folder(folder.path(), on_mnist);
  const auto advice = [](const std::string& directory) {
    return "download it with `trainyard data get mnist --data " + directory +
           "`; then set --data DIR or TRAINYARD_DATA, so that DIR contains the folder mnist, or set [data] "
           "mnist = \"FOLDER\" or \"synthetic\"";
  };
  const std::string file = (folder / "f.toml").string();
  CHECK(error_of(nowhere, {}) == file + ": data set \"mnist\" has no folder; " + advice("DIR"));
  CHECK(error_of(
            in_folder(folder.path(), "[data]\nfolder = \".\"\n[defaults]\ndataset = \"folder\"\n" + on_mnist),
            {})
            .find("data set \"folder\" has neither class folders nor arrays in " + folder.path().string()) !=
        std::string::npos);
  CHECK(error_of(in_folder(folder.path(), "[data]\nmnist = \"x\"\n" + on_mnist), {"/nowhere"}) ==
        file + ": data set \"mnist\" was not found in /nowhere, " + (folder / "x").string() + "; " +
            advice("/nowhere"));
}

TEST_CASE("two runs that read the same data are an error with both labels") {
  const Experiment experiment =
      in_folder("/nowhere",
                "[data]\nmnist = \"synthetic\"\n[matrix]\nmodel = [\"mlp\"]\ndataset = [\"mnist\", "
                "\"synthetic-digits\"]\n");
  const std::string text = error_of(experiment, {});
  CHECK(text.starts_with(
      "/nowhere/f.toml: the runs \"mlp single seed 0 dataset=mnist\" and \"mlp single seed 0 "
      "dataset=synthetic-digits\" have the same key "));
}

TEST_CASE("--data overrides TRAINYARD_DATA") {
  const char* before = std::getenv("TRAINYARD_DATA");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TRAINYARD_DATA", "/from/environment", 1);
  CHECK(data_search(std::nullopt) == "/from/environment");
  CHECK(data_search("/from/line") == "/from/line");
  ::setenv("TRAINYARD_DATA", "", 1);
  CHECK_FALSE(data_search(std::nullopt).has_value());
  ::unsetenv("TRAINYARD_DATA");
  CHECK_FALSE(data_search(std::nullopt).has_value());
  if (before != nullptr) ::setenv("TRAINYARD_DATA", kept.c_str(), 1);
}

TEST_CASE("the shipped MNIST experiment finds the real files") {
  const std::filesystem::path directory = data_search(std::nullopt).value_or("../shared/data");
  if (!models::find_folder(models::find_dataset("mnist"), directory)) {
    MESSAGE("skipped: no MNIST in ", directory.string());
    return;
  }
  Experiment experiment = std::move(load("experiments/mnist.toml").experiment.value());
  resolve_data(experiment, {directory});
  CHECK(experiment.runs.size() == 6);
  for (const Run& run : experiment.runs) CHECK(run.data.fingerprint.size() == 64);
}
