// The format of our own files. pytorch_training_test.cpp tests that Python can read and write them, too.
#include "models/networks/safetensors.h"

#include <filesystem>
#include <string>

#include "base/error.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/support/scratch_folder.h"

namespace {

using namespace trainyard;
using namespace trainyard::networks;
using trainyard::tests::read_text;
using trainyard::tests::ScratchFolder;
using trainyard::tests::write_text;

// A file with this header and `values` zero bytes.
std::string with_header(const std::string& header, std::size_t values) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + std::string(values, '\0');
}

}  // namespace

TEST_CASE("tensors of any type and memory order are read back unchanged and in their order") {
  const ScratchFolder folder;
  const auto file = folder.path() / "weights.safetensors";
  const std::vector<NamedParameter> tensors{
      {"1.weight", at::rand({2, 3, 4, 5}).clone(at::MemoryFormat::ChannelsLast).requires_grad_()},
      {"0.bias", at::rand({3}, at::kDouble)},
      {"tokens", at::arange(6).view({2, 3}).t()},
      {"count", at::scalar_tensor(5, at::kInt)},
      {"nothing", at::empty({0, 4})}};
  write_safetensors(file, tensors);
  const auto found = read_safetensors(file);
  REQUIRE(found.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(found[i].name == tensors[i].name);
    CHECK((found[i].value.scalar_type() == tensors[i].value.scalar_type()));
    CHECK(at::equal(found[i].value, tensors[i].value));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file has the length of its header in 8 bytes, the header padded to 8 bytes, and the values") {
  const ScratchFolder folder;
  const auto file = folder.path() / "one.safetensors";
  write_safetensors(file, {{"a", at::tensor({1.0F, -2.0F})}});
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(read_text(file) == std::string{static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0} + padded +
                               std::string("\0\0\x80\x3f\0\0\0\xc0", 8));
}

TEST_CASE("the error for an incomplete file names it, and nothing is read beyond its end") {
  const ScratchFolder folder;
  const auto file = folder.path() / "cut.safetensors";
  const std::string entry = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::vector<std::pair<std::string, const char*>> cases{
      {"abc", "it ends in its first 8 bytes"},
      {with_header(entry, 8).substr(0, 30), "it ends in its header"},
      {with_header("[1, 2]", 0), "its header is not a JSON object"},
      {with_header(entry, 7), "the values of a are not where its header says"},
      {with_header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 12), "the values of a"},
      {with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "the values of a"},
      {with_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
       "the shape of a is wrong"},
      {with_header(R"({"a":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}})", 8),
       "type F8 is not supported"},
      {with_header(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "entry of a is wrong"}};
  for (const auto& each : cases) {
    CAPTURE(each.second);
    write_text(file, each.first);
    CHECK_THROWS_WITH_AS(read_safetensors(file), doctest::Contains(each.second), UserError);
    CHECK_THROWS_WITH_AS(read_safetensors(file), doctest::Contains("cut.safetensors"), UserError);
  }
  CHECK_THROWS_AS(read_safetensors(folder.path() / "none"), UserError);
}

TEST_CASE("a file that cannot be written leaves no temporary file, and an existing entry unchanged") {
  const ScratchFolder folder;
  CHECK_THROWS_AS(write_safetensors(folder.path() / "none" / "a", {{"a", at::ones({2})}}), UserError);
  std::filesystem::create_directory(folder.path() / "taken");
  write_text(folder.path() / "taken" / "inside", "x");
  CHECK_THROWS_AS(write_safetensors(folder.path() / "taken", {{"a", at::ones({2})}}), UserError);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
