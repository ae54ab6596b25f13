#include "models/readers/decoded_images.h"

#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "base/files.h"
#include "models/readers/image_folder.h"
#include "tests/models/readers/pictures.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

std::string one_picture(std::uint8_t value) {
  return as_text(png_of({.height = 4, .width = 4, .pixels = std::vector<std::uint8_t>(48, value)}));
}

// Images are not kept before their files are two seconds old.
void wait_until_settled() {
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
}

// The first pixel of each image.
std::vector<int> first_pixels(const Images& images) {
  std::vector<int> pixels;
  for (std::int64_t i = 0; i < images.size(); ++i) pixels.push_back(images.image(i)[0]);
  return pixels;
}

std::vector<std::string> kept_in(const fs::path& folder) {
  return fs::exists(folder) ? names_in(folder) : std::vector<std::string>{};
}

}  // namespace

TEST_CASE("decoded pictures are kept, mapped when they are read again, and decoded again after a change") {
  const DataFolder data;
  const ScratchFolder yard;
  for (const int i : {1, 2, 3})
    data.write("train/a/" + std::to_string(i) + ".png", one_picture(static_cast<std::uint8_t>(i)));
  data.write("train/b/1.png", one_picture(40));
  data.write("test/b/1.png", one_picture(50));
  int decoded = 0;
  const Decoding decoding{.folder = yard.path() / "yard" / "decoded",
                          .writes = true,
                          .progress = [&](std::int64_t done, std::int64_t all) {
                            CHECK(done == decoded++ % 5);
                            CHECK(all == 5);
                          }};
  const auto read = [&] { return read_image_folder(data.path(), 4, decoding); };

  CHECK_FALSE(read().parts.train.mapped);
  CHECK(kept_in(decoding.folder)
            .empty());  // a file that was just written could change again within the same time
  wait_until_settled();
  decoded = 0;
  const ReadImages first = read();
  CHECK(decoded == 5);
  CHECK(kept_in(decoding.folder).size() == 1);
  CHECK(fs::status(decoding.folder.parent_path()).permissions() == fs::perms::owner_all);

  const ReadImages again = read();
  CHECK(decoded == 5);
  CHECK(again.fingerprint == first.fingerprint);
  CHECK(again.classes == 2);
  CHECK(again.parts.train.mapped);
  CHECK(again.parts.train.pixels.empty());
  CHECK(again.parts.train.shape == ImageShape{3, 4, 4});
  CHECK(again.parts.train.labels == std::vector<std::int32_t>{0, 0, 0, 1});
  CHECK(first_pixels(again.parts.train) == std::vector<int>{1, 2, 3, 40});
  CHECK(again.parts.validation.size() == 0);
  CHECK(first_pixels(again.parts.test) == std::vector<int>{50});
  CHECK(first_pixels(selected(again.parts.train, {3, 0, 3})) == std::vector<int>{40, 1, 40});
  CHECK(profile_of({again.parts.train, again.parts.test, again.parts.test}).channels[0].counts ==
        profile_of({first.parts.train, first.parts.test, first.parts.test}).channels[0].counts);
  CHECK(read_image_folder(data.path(), 2, decoding).parts.train.shape == ImageShape{3, 2, 2});
  CHECK(kept_in(decoding.folder).size() == 2);  // one per size

  data.write("test/b/1.png", one_picture(60));
  const ReadImages changed = read();
  CHECK(changed.fingerprint != first.fingerprint);
  CHECK(first_pixels(changed.parts.test) == std::vector<int>{60});
}

TEST_CASE("a kept file that is not complete is ignored, and nothing is written through a link") {
  const DataFolder data;
  const ScratchFolder yard;
  data.write("a/1.png", one_picture(7));
  wait_until_settled();
  const fs::path folder = yard.path() / "decoded";
  fs::create_directory(yard.path() / "elsewhere");
  fs::create_directory_symlink(yard.path() / "elsewhere", folder);
  read_image_folder(data.path(), 4, {.folder = folder, .writes = true});
  CHECK(kept_in(yard.path() / "elsewhere").empty());
  fs::remove(folder);
  read_image_folder(data.path(), 4, {.folder = folder});
  CHECK_FALSE(fs::exists(folder));  // a rank writes nothing
  read_image_folder(data.path(), 4, {.folder = folder, .writes = true});
  REQUIRE(kept_in(folder).size() == 1);
  const fs::path kept = folder / kept_in(folder)[0];
  const std::string whole = whole_file(kept);
  REQUIRE(mapped_images(kept));
  for (std::size_t size : {std::size_t{0}, std::size_t{20}, std::size_t{140}, whole.size() - 1}) {
    CAPTURE(size);
    write_whole_file(kept, whole.substr(0, size));
    CHECK_FALSE(mapped_images(kept));
    CHECK(first_pixels(read_image_folder(data.path(), 4, {.folder = folder}).parts.train) ==
          std::vector<int>{7});
  }
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{96}, std::size_t{104}, std::size_t{126}, std::size_t{135}}) {
    CAPTURE(at);  // the version, a length, and a number of images
    std::string damaged = whole;
    damaged[at] = '\x7f';
    write_whole_file(kept, damaged);
    CHECK_FALSE(mapped_images(kept));
  }
  CHECK_FALSE(mapped_images(folder / "missing"));
}

TEST_CASE("arrays are kept too") {
  const DataFolder data;
  const ScratchFolder yard;
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 3), }";
  header += std::string(128 - 10 - header.size() - 1, ' ') + '\n';
  const std::string start = "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4);
  data.write("train-images.npy", start + header + "abcdefghijkl");
  header.replace(header.find("(2, 2, 3)"), 9, "(2,)     ");
  data.write("train-labels.npy", start + header + std::string("\x00\x01", 2));
  wait_until_settled();
  const Decoding decoding{.folder = yard.path() / "decoded", .writes = true};
  const std::string fingerprint = read_image_folder(data.path(), 4, decoding).fingerprint;
  const ReadImages again = read_image_folder(data.path(), 4, decoding);
  CHECK(again.parts.train.mapped);
  CHECK(again.fingerprint == fingerprint);
  CHECK(again.parts.train.shape == ImageShape{1, 2, 3});
  CHECK(first_pixels(again.parts.train) == std::vector<int>{'a', 'g'});
}
