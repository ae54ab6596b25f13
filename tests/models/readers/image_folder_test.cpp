#include "models/readers/image_folder.h"

#include <fstream>

#include <doctest/doctest.h>

#include "models/readers/image_decoder.h"
#include "tests/models/readers/pictures.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"
#include "tests/support/without_rights.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Labels = std::vector<std::int32_t>;

Picture flat(std::uint8_t value) {
  return {.height = 6, .width = 8, .pixels = Bytes(6 * 8 * 3, value)};
}

// A file as numpy.save writes it (numpy.lib.format, version 1.0): the header is padded to a multiple of 64.
std::string npy(const std::string& shape, const Bytes& bytes, const std::string& type = "|u1") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header += std::string(128 - 10 - header.size() - 1, ' ') + '\n';
  return "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + header + as_text(bytes);
}

ReadImages read_folder(const DataFolder& folder, std::int64_t size = 4) {
  return read_image_folder(folder.path(), size);
}

std::string error_of(const DataFolder& folder) {
  return user_error_of([&] { read_folder(folder); });
}

DataChoice choice_of(const DataFolder& folder) {
  DataChoice choice;
  choice.dataset = choice.source = "folder";
  choice.folder = folder.path();
  choice.image_size = 4;
  return choice;
}

}  // namespace

TEST_CASE("there is one folder per class, and labels are in the order of the class names") {
  const DataFolder folder;
  folder.write("dogs/b.png", as_text(png_of(flat(20))));
  folder.write("cats/z.JPG", as_text(jpeg_of(flat(40))));
  folder.write("cats/a.png", as_text(png_of(flat(10))));
  folder.write("cats/notes.txt", "not a picture");
  folder.write(".git/notes.txt", "not a class");
  const ReadImages found = read_folder(folder);
  CHECK(found.classes == 2);
  CHECK(found.parts.train.shape == ImageShape{3, 4, 4});
  CHECK(found.parts.train.labels == Labels{0, 0, 1});
  CHECK(found.parts.train.pixels.size() == 3 * 48);
  CHECK(found.parts.train.pixels[0] == 10);
  CHECK(std::abs(found.parts.train.pixels[48] - 40) <= 1);
  CHECK(found.parts.train.pixels[96] == 20);
  CHECK(found.parts.test.size() == 0);
}

TEST_CASE("the parts of the folder are used, and a missing part is split off train") {
  const DataFolder folder;
  for (int i = 0; i < 10; ++i)
    for (const std::string name : {"a", "b"})
      folder.write("train/" + name + "/" + std::to_string(i) + ".png",
                   as_text(png_of(flat(static_cast<std::uint8_t>(i)))));
  folder.write("test/b/x.png", as_text(png_of(flat(99))));
  const ImageSplits splits = read_images(choice_of(folder));
  CHECK(splits.train.size() == 18);  // 0.8/0.9 of 20, rounded
  CHECK(splits.validation.size() == 2);
  CHECK(splits.test.labels == Labels{1});
  CHECK(splits.test.pixels.front() == 99);
  folder.write("validation/a/x.png", as_text(png_of(flat(98))));
  const ImageSplits own = read_images(choice_of(folder));
  CHECK(own.train.size() == 20);
  CHECK(own.validation.pixels.front() == 98);
  folder.write("test/c/x.png", as_text(png_of(flat(99))));
  CHECK(contains(error_of(folder), "the training part has no class \"c\""));
}

TEST_CASE(
    "classes and shape are read from the folder, and the fingerprint depends on content and image size") {
  const DataFolder folder;
  folder.write("a/1.png", as_text(png_of(flat(1))));
  folder.write("b/1.png", as_text(png_of(flat(2))));
  folder.write("c/1.png", as_text(png_of(flat(3))));
  DataChoice choice = choice_of(folder);
  const Dataset& dataset = find_dataset("folder");
  const DataFacts found = facts(dataset, folder.path(), choice);
  CHECK(found.input == InputShape{.image = {3, 4, 4}, .classes = 3});
  choice.image_size = 8;
  CHECK(facts(dataset, folder.path(), choice).input.image == ImageShape{3, 8, 8});
  CHECK(facts(dataset, folder.path(), choice).fingerprint != found.fingerprint);
  choice.image_size = 4;
  CHECK(facts(dataset, folder.path(), choice).fingerprint == found.fingerprint);
  folder.write("c/1.png", as_text(png_of(flat(4))));
  CHECK(facts(dataset, folder.path(), choice).fingerprint != found.fingerprint);
  CHECK(find_folder(dataset, folder.path()) == folder.path());
  CHECK_FALSE(find_folder(dataset, folder.path() / "a"));
}

TEST_CASE("images of other data sets are scaled as pictures are") {
  const Images grey{.shape = {1, 2, 2}, .pixels = {0, 100, 100, 200, 8, 8, 8, 8}, .labels = {3, 1}};
  const Images small = scaled(grey, 1);
  CHECK(small.shape == ImageShape{1, 1, 1});
  CHECK(small.pixels == Bytes{100, 8});
  CHECK(small.labels == Labels{3, 1});
  CHECK(scaled(grey, 2).pixels == grey.pixels);
  const Images color{.shape = {3, 1, 1}, .pixels = {1, 2, 3}, .labels = {0}};
  CHECK(scaled(color, 2).pixels == Bytes{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
  DataChoice choice;
  choice.dataset = choice.source = "synthetic-digits";
  choice.train_samples = 3;
  choice.image_size = 9;
  choice.fingerprint = facts(find_dataset(choice.source), {}, choice).fingerprint;
  CHECK(facts(find_dataset(choice.source), {}, choice).input.image == ImageShape{1, 9, 9});
  CHECK(std::get<Images>(read(choice).train).pixels.size() == 3 * 81);
}

TEST_CASE("an array of images has channels last, channels first, or no channels") {
  const Bytes numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const DataFolder folder;
  folder.write("train-labels.npy", npy("2,", {0, 2}));
  folder.write("train-images.npy", npy("2, 2, 1, 3", numbers));  // [N, H, W, C]
  const ReadImages last = read_folder(folder);
  CHECK(last.classes == 3);
  CHECK(last.parts.train.shape == ImageShape{3, 2, 1});
  CHECK(last.parts.train.pixels == Bytes{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12});
  CHECK(last.parts.train.labels == Labels{0, 2});
  folder.write("train-images.npy", npy("2, 3, 1, 2", numbers));  // [N, C, H, W]
  CHECK(read_folder(folder).parts.train.shape == ImageShape{3, 1, 2});
  CHECK(read_folder(folder).parts.train.pixels == numbers);
  folder.write("train-images.npy", npy("2, 2, 3", numbers));
  CHECK(read_folder(folder).parts.train.shape == ImageShape{1, 2, 3});
}

TEST_CASE("the error for a wrong array names the file and what to do") {
  const Bytes numbers(12, 1);
  const DataFolder folder;
  folder.write("train-labels.npy", npy("2,", {0, 1}));
  CHECK(contains(error_of(folder), "train-images.npy is missing"));
  folder.write("train-images.npy", npy("2, 2, 3", numbers, "<f4"));
  CHECK(contains(error_of(folder),
                 "train-images.npy: the array has type f4, and must be uint8 (u1); convert it with .astype"));
  folder.write("train-images.npy", npy("2, 2, 3", Bytes(11, 1)));
  CHECK(contains(
      error_of(folder),
      "train-images.npy: byte 139: the file ends here, 1 byte short of 12 elements; write it again"));
  folder.write("train-images.npy", npy("2, 2, 3", Bytes(13, 1)));
  CHECK(contains(error_of(folder), "more bytes follow 12 elements; write it again with numpy.save"));
  folder.write("train-images.npy", npy("3, 2, 2", numbers));
  CHECK(
      contains(error_of(folder), "train-labels.npy: the array has shape [2], but there are 3 images; save"));
  folder.write("train-labels.npy", npy("3, 1", {0, 1, 2}));
  CHECK(contains(error_of(folder), "train-labels.npy: the array has shape [3, 1], but there are 3 images"));
  folder.write("train-labels.npy", npy("3,", {0, 1, 2}));
  folder.write("validation-images.npy", npy("3, 4, 1", numbers));
  folder.write("validation-labels.npy", npy("3,", {0, 1, 2}));
  CHECK(contains(error_of(folder), "images of train have shape [1, 2, 2], images of another part [1, 4, 1]"));
  folder.write("train-images.npy", npy("2, 6", numbers));
  CHECK(contains(error_of(folder), "the array has shape [2, 6]; use [N, H, W]"));
  folder.write("train-images.npy", npy("", {1}));
  CHECK(contains(error_of(folder), "the array has shape []; use [N, H, W]"));
  folder.write("train-images.npy", npy("0, 2, 2", {}));
  CHECK(contains(error_of(folder), "train-images.npy: the array is empty"));
  folder.write("train-images.npy", npy("99999999999999, 2", numbers));
  CHECK(contains(error_of(folder), "impossible shape"));
  std::string fortran = npy("2, 2, 3", numbers);
  fortran.replace(fortran.find("False, "), 7, "True,  ");
  folder.write("train-images.npy", fortran);
  const std::string said = error_of(folder);
  CHECK(contains(said, "in Fortran order; save numpy.ascontiguousarray(array)"));
  CHECK_FALSE(contains(said, "again"));  // the file is not damaged: another copy of it would not help
  folder.write("train-images.npy", "PNG");
  CHECK(contains(error_of(folder), "train-images.npy: byte 3: the file ends here"));
}

// torchvision's ImageFolder raises FileNotFoundError, too.
TEST_CASE("a class without pictures is an error that names the class") {
  const DataFolder folder;
  for (const std::string part : {"", "/train", "/test"}) {
    const fs::path place = folder.path().string() + part;
    folder.write("." + part + "/cats/a.png", as_text(png_of(flat(10))));
    CHECK(read_folder(folder).classes == 1);
    for (const char* name : {"dogs", "mice"}) fs::create_directory(place / name);
    std::ofstream(place / "dogs" / "notes.txt") << "no picture";
    CHECK(
        contains(error_of(folder),
                 place.string() + ": these class folders have no PNG or JPEG file: \"dogs\", \"mice\"; add"));
    for (const char* name : {"dogs", "mice"}) fs::remove_all(place / name);
  }
}

TEST_CASE("a class that cannot be read is an error, and is never left out") {
  const DataFolder folder;
  folder.write("cats/a.png", as_text(png_of(flat(10))));
  folder.write("dogs/b.png", as_text(png_of(flat(20))));
  const fs::path dogs = folder.path() / "dogs";
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(dogs, fs::perms::none);
  {
    const WithoutRights user;
    CHECK(contains(error_of(folder), dogs.string() + ": cannot be read: Permission denied"));
  }
  fs::permissions(dogs, fs::perms::owner_all);
  CHECK(read_folder(folder).classes == 2);
}

TEST_CASE("a folder without images is an error that says what to add") {
  const DataFolder folder;
  CHECK(contains(error_of(folder),
                 "\"" + folder.path().string() + "\" has no images; add one folder per class"));
  folder.write("cats/a.png", "damaged");
  CHECK(contains(error_of(folder), "cats/a.png: byte 0: this is neither a PNG nor a JPEG"));
}
