// Checkpoint files: complete, or an error.
#include "experiments/protocol/checkpoint.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/files.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::experiments;

namespace fs = std::filesystem;

namespace {

const std::vector<std::string_view> values{"three ", "parts ", "of values"};

Checkpoint example_checkpoint() {
  return {.run = "3f9a1c20b7de",
          .attempt = 2,
          .epoch = 5,
          .stage = 1,
          .weights = FileSum{10, "0123abcd"},
          .state = {{"steps", 40}}};
}

std::string error_of(const fs::path& folder) {
  return tests::user_error_of([&] { check_checkpoint(folder, 5, 1); });
}

}  // namespace

TEST_CASE("a checkpoint survives writing and reading, and no other file is left in the folder") {
  const tests::ScratchFolder folder;
  write_checkpoint(folder.path(), example_checkpoint(), values);
  write_checkpoint(folder.path(), example_checkpoint(), values);  // replaces an older one
  const CheckpointContent content = read_checkpoint(folder.path(), 5, 1);
  CHECK(content.values == "three parts of values");
  CHECK(content.checkpoint.run == "3f9a1c20b7de");
  CHECK(content.checkpoint.attempt == 2);
  CHECK(content.checkpoint.epoch == 5);
  CHECK(content.checkpoint.stage == 1);
  CHECK(content.checkpoint.weights == FileSum{10, "0123abcd"});
  CHECK(content.checkpoint.state == nlohmann::json{{"steps", 40}});
  CHECK(check_checkpoint(folder.path(), 5, 1).state == content.checkpoint.state);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"epoch-5.stage-1.checkpoint"});
}

TEST_CASE("values of several megabytes survive writing and reading") {
  const tests::ScratchFolder folder;
  std::string many(3'000'017, ' ');
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<char>(i * i >> 7U);
  write_checkpoint(folder.path(), example_checkpoint(), std::vector<std::string_view>{many});
  CHECK(read_checkpoint(folder.path(), 5, 1).values == many);
}

TEST_CASE("a checkpoint that is cut at any byte, or has any bit flipped, is an error") {
  const tests::ScratchFolder folder;
  write_checkpoint(folder.path(), example_checkpoint(), values);
  const fs::path file = checkpoint_file(folder.path(), 5, 1);
  const std::string whole = tests::read_text(file);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    tests::write_text(file, whole.substr(0, size));
    CAPTURE(size);
    CHECK(error_of(folder.path()).find("the checkpoint is damaged") != std::string::npos);
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    tests::write_text(file, flipped);
    CAPTURE(bit);
    CHECK(error_of(folder.path()).find("the checkpoint is damaged") != std::string::npos);
  }
  tests::write_text(file, whole + "x");
  CHECK(error_of(folder.path()).find("bytes, should be ") != std::string::npos);
  tests::write_text(file, whole);
  CHECK(error_of(folder.path()).empty());
}

TEST_CASE("a full disk is an error with the file name, and keeps only the previous checkpoint") {
  const tests::ScratchFolder folder;
  write_checkpoint(folder.path(), example_checkpoint(), values);
  const std::string before = tests::read_text(checkpoint_file(folder.path(), 5, 1));
  const std::string many(100'000, 'x');
  std::string message;
  {
    const tests::FileSizeLimit full(50'000);
    try {
      write_checkpoint(folder.path(), example_checkpoint(), std::vector<std::string_view>{many});
    } catch (const std::system_error& error) {
      message = error.what();
    }
  }
  CHECK(message.find(checkpoint_file(folder.path(), 5, 1).string()) == 0);
  CHECK(tests::read_text(checkpoint_file(folder.path(), 5, 1)) == before);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"epoch-5.stage-1.checkpoint"});
}

TEST_CASE("checkpoint files are recognised by name, and links and other names are ignored") {
  const tests::ScratchFolder folder;
  tests::write_text(folder / "epoch-12.stage-0.checkpoint", "");
  tests::write_text(folder / "epoch-12.weights.safetensors", "");
  for (const char* other :
       {"epoch-12.stage-0.checkpoint.tmp", "epoch-x.stage-0.checkpoint", "epoch--3.stage-0.checkpoint",
        "epoch-3.stage-.checkpoint", "epoch-99999999999999999999.stage-0.checkpoint", "notes"})
    tests::write_text(folder / other, "");
  fs::create_symlink(folder / "notes", folder / "epoch-13.stage-0.checkpoint");
  auto files = checkpoint_files(folder.path());
  std::ranges::sort(files, {}, [](const CheckpointFile& file) { return file.stage.value_or(-1); });
  REQUIRE(files.size() == 2);
  CHECK(files[0].epoch == 12);
  CHECK(!files[0].stage.has_value());
  CHECK(files[1].epoch == 12);
  CHECK(files[1].stage == 0);
  fs::create_directory_symlink(folder.path(), folder / "link");
  CHECK(checkpoint_files(folder / "link").empty());
  CHECK(checkpoint_files(folder / "nowhere").empty());
}

TEST_CASE("the sum of a file is its size and CRC-32C") {
  const tests::ScratchFolder folder;
  tests::write_text(folder / "file", "123456789");
  CHECK(sum_of_file(folder / "file") == FileSum{9, "e3069283"});
  CHECK_THROWS_AS(sum_of_file(folder / "nowhere"), std::system_error);
}
