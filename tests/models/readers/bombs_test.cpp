// Small files that unpack to very much: each is refused with its limit, before memory or time is used up.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <zlib.h>

#include "models/readers/data_file.h"
#include "models/readers/image_decoder.h"
#include "models/readers/image_readers.h"
#include "models/readers/text_readers.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(crc));
}

// A black PNG with one bit per pixel.
std::vector<std::uint8_t> one_bit_png(std::uint32_t side) {
  const std::string rows(static_cast<std::size_t>(side) * (side / 8 + 1), '\0');
  std::string packed(::compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  REQUIRE(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(rows.data()), rows.size()) == Z_OK);
  packed.resize(size);
  const std::string header = big_endian(side) + big_endian(side) + std::string{1, 0, 0, 0, 0};
  const std::string png =
      "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", packed) + chunk("IEND", "");
  return {png.begin(), png.end()};
}

const std::string too_long(most_text + 1, ' ');

}  // namespace

TEST_CASE("a review that is too long is refused with its name, in an archive and in a folder") {
  const DataFolder folder;
  const auto archive = folder.write("aclImdb.tar.gz", tar({{"aclImdb/train/pos/0_9.txt", too_long}}));
  folder.write("aclImdb/train/pos/0_9.txt", too_long);
  const auto error = [](const std::filesystem::path& place) {
    return user_error_of([&] {
      Sha256 hash;
      read_imdb(place, hash);
    });
  };
  CHECK(contains(error(archive), "aclImdb/train/pos/0_9.txt in the archive has more than 67108864 bytes"));
  CHECK(contains(error(folder / "aclImdb"), "0_9.txt: byte 67108864: the text has more than 67108864 bytes"));
}

TEST_CASE("sentences in gzip that unpack to too much are refused") {
  const DataFolder folder;
  folder.write("train.de.gz", too_long);
  folder.write("train.en.gz", "one\n");
  const std::string error = user_error_of([&] {
    Sha256 hash;
    read_multi30k(folder.path(), hash);
  });
  CHECK_MESSAGE(contains(error, "train.de.gz: byte 67108864 (unpacked): the text has more than"), error);
}

TEST_CASE("images in gzip that would unpack to too much are refused by their header") {
  const DataFolder folder;
  const auto images = folder.write("train-images-idx3-ubyte.gz", big_endian(0x803) + big_endian(4'000'000) +
                                                                     big_endian(28) + big_endian(28));
  const auto labels = folder.write("train-labels-idx1-ubyte.gz", idx_labels(1));
  const std::string error = user_error_of([&] {
    read_idx_part({images, labels}, {.channels = 1, .height = 28, .width = 28}, 10, nullptr, nullptr);
  });
  CHECK_MESSAGE(contains(error, "the file unpacks to more than 1073741824 bytes"), error);
}

TEST_CASE("a gzip file is read up to the limit of its unpacked content, and a plain file to its end") {
  const DataFolder folder;
  const std::string part = gzipped(std::string(std::size_t{1} << 26U, '\0'));
  std::string bomb;  // gzip files one after the other are one gzip file
  for (int i = 0; i < 17; ++i) bomb += part;
  write_text(folder / "bomb.gz", bomb);
  DataFile file(folder / "bomb.gz");
  std::vector<std::uint8_t> piece(std::size_t{1} << 24U);
  const std::string error = user_error_of([&] {
    while (file.read(piece) > 0) {
    }
  });
  CHECK_MESSAGE(contains(error, "bomb.gz: byte 107"), error);
  CHECK(contains(error, "(unpacked): the file unpacks to more than 1073741824 bytes, which is the limit"));
}

TEST_CASE("a picture with too many pixels is refused, whatever its file's size") {
  const auto error = [](std::uint32_t side) {
    return user_error_of([&] { decode_picture(one_bit_png(side), "x.png"); });
  };
  CHECK(error(16'000) ==
        "x.png: it has 16000x16000 pixels, but at most 67108864 are allowed; replace the picture or remove "
        "it from "
        "the folder");
  CHECK(error(800).empty());
}
