// Images of the user: decoded once, kept in the yard, and mapped by all ranks.
#include <chrono>
#include <filesystem>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

std::string array_file(const std::string& shape, const std::string& bytes) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + "), }";
  header += std::string(128 - 10 - header.size() - 1, ' ') + '\n';
  return "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + header + bytes;
}

// Ten classes of 8×8 images: class k has a bright line of pixels that begins at 6k.
void write_images(const Scratch& yard, int count) {
  std::string images, labels;
  for (int i = 0; i < count; ++i) {
    const int label = i * 7 % 10;
    labels += static_cast<char>(label);
    for (int pixel = 0; pixel < 64; ++pixel)
      images += static_cast<char>(pixel / 6 == label ? 200 + i % 50 : (i * 13 + pixel * 29) % 90);
  }
  yard.write("images/train-images.npy", array_file(std::to_string(count) + ", 8, 8", images));
  yard.write("images/train-labels.npy", array_file(std::to_string(count) + ",", labels));
}

std::string results(const Scratch& yard, const std::string& folder) {
  const Output output =
      yard.at({"sql", "SELECT strategy, test_loss, test_accuracy FROM final_metrics ORDER BY strategy",
               "--format", "json", "--yard", folder});
  REQUIRE_MESSAGE(output.code == 0, output.err);
  return output.out;
}

}  // namespace

TEST_CASE("ranks that map kept images compute the same as ranks that read the files") {
  const Scratch yard;
  write_images(yard, 500);
  yard.write("t.toml", R"(name = "own-images"
[data]
folder = "images"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp"]
[defaults]
dataset = "folder"
epochs = 2
batch = 20
augmentation = "flip-crop"
)");
  // Nothing is kept of files that were just written: they could change within the same time.
  checked_output(yard.at({"run", "t.toml", "--yard", "read"}), 0, "ddp");
  CHECK_FALSE(std::filesystem::exists(yard.path() / "read" / "decoded"));
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));

  checked_output(yard.at({"check", "t.toml", "--yard", "mapped"}), 0, "ok, 2 runs");
  CHECK_FALSE(std::filesystem::exists(yard.path() / "mapped"));
  checked_output(yard.at({"plan", "t.toml", "--yard", "mapped"}), 0, "ddp");
  const auto kept = names_in(yard.path() / "mapped" / "decoded");
  REQUIRE(kept.size() == 1);
  const auto written = std::filesystem::last_write_time(yard.path() / "mapped" / "decoded" / kept[0]);
  checked_output(yard.at({"run", "t.toml", "--yard", "mapped"}), 0, "ddp");
  CHECK(names_in(yard.path() / "mapped" / "decoded") == kept);
  CHECK(std::filesystem::last_write_time(yard.path() / "mapped" / "decoded" / kept[0]) == written);
  CHECK(results(yard, "mapped") == results(yard, "read"));

  write_images(yard, 499);
  checked_output(yard.at({"plan", "t.toml", "--yard", "mapped"}), 0, "0 finished");
}
