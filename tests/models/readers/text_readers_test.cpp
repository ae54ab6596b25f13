#include "models/readers/text_readers.h"

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

using Strings = std::vector<std::string>;

// In another order than the one in which they are read.
const std::vector<TarEntry> reviews{{"aclImdb/README", "about"},
                                    {"aclImdb/test/pos/7_8.txt", "test good"},
                                    {"aclImdb/train/pos/1_10.txt", "good ä"},
                                    {"aclImdb/train/unsup/5_0.txt", "\xff never read as text"},
                                    {"aclImdb/train/pos/0_9.txt", "better"},
                                    {"aclImdb/train/neg/3_1.txt", "bad"},
                                    {"aclImdb/train/urls_pos.txt", "http"},
                                    {"aclImdb/test/neg/0_2.txt", "test bad"}};

std::string error_of_imdb(const fs::path& place) {
  return user_error_of([&] {
    Sha256 hash;
    read_imdb(place, hash);
  });
}

std::string fingerprint_of_imdb(const fs::path& place) {
  Sha256 hash;
  read_imdb(place, hash);
  return hash.hex();
}

void write_multi30k(const DataFolder& folder, const std::string& ending) {
  for (const std::string part : {"train", "val", "test_2016_flickr"}) {
    folder.write(part + ".de" + ending, "Ein " + part + ".\nZwei Männer.\n");
    folder.write(part + ".en" + ending, "One " + part + ".\nTwo men.\n");
  }
}

}  // namespace

TEST_CASE("reviews are ordered by part, label and name, and other files of the archive are ignored") {
  const DataFolder folder;
  Sha256 hash;
  const Parts<RawTexts> parts = read_imdb(folder.write("aclImdb.tar.gz", tar(reviews)), hash);
  CHECK(parts.train.source == Strings{"bad", "better", "good ä"});
  CHECK(parts.train.labels == std::vector<std::int32_t>{0, 1, 1});
  CHECK(parts.test.source == Strings{"test bad", "test good"});
  CHECK(parts.test.labels == std::vector<std::int32_t>{0, 1});
  CHECK(parts.validation.size() == 0);
}

TEST_CASE("a folder, a .tar and a .tar.gz of the same reviews have the same fingerprint") {
  const DataFolder folder;
  for (const TarEntry& entry : reviews) folder.write(entry.name, entry.bytes);
  const std::string expected = fingerprint_of_imdb(folder.path() / "aclImdb");
  CHECK(fingerprint_of_imdb(folder.write("a.tar", tar(reviews))) == expected);
  CHECK(fingerprint_of_imdb(folder.write("a.tar.gz", tar(reviews))) == expected);
  folder.write("aclImdb/test/neg/0_2.txt", "test bat");
  CHECK(fingerprint_of_imdb(folder.path() / "aclImdb") != expected);
}

TEST_CASE("the error for a truncated archive names the archive and the byte at which it ends") {
  const DataFolder folder;
  const std::string whole = gzipped(tar(reviews));
  const fs::path file = folder.path() / "aclImdb.tar.gz";
  for (const std::size_t size :
       {whole.size() / 2, whole.size() - 4}) {  // within the content, within the checksum
    folder.write("part", whole.substr(0, size));
    fs::rename(folder.path() / "part", file);
    const std::string error = error_of_imdb(file);
    CHECK(error.starts_with(file.string() + ": byte "));
    CHECK(contains(error, " (unpacked): the gzip stream is truncated here"));
  }
  const fs::path plain = folder.write("aclImdb.tar", tar(reviews).substr(0, 512 * 3 + 5));
  CHECK(
      error_of_imdb(plain).starts_with(plain.string() + ": byte 1541: the archive is truncated or damaged"));
}

TEST_CASE("a damaged byte in an archive is an error") {
  const DataFolder folder;
  std::string bytes = gzipped(tar(reviews));
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);  // in the checksum
  folder.write("part", bytes);
  fs::rename(folder.path() / "part", folder.path() / "a.tar.gz");
  CHECK(contains(error_of_imdb(folder.path() / "a.tar.gz"), "a.tar.gz: byte "));
}

TEST_CASE("the error for a review that is not UTF-8 names the review and the byte") {
  std::vector<TarEntry> latin1 = reviews;
  latin1.push_back({"aclImdb/train/neg/8_1.txt", "Gr\xf6\xdf"});
  const DataFolder folder;
  for (const TarEntry& entry : latin1) folder.write(entry.name, entry.bytes);
  const fs::path archive = folder.write("a.tar.gz", tar(latin1));
  CHECK(error_of_imdb(archive) ==
        archive.string() + ": aclImdb/train/neg/8_1.txt: byte 2: this is not UTF-8; download the file again");
  CHECK(error_of_imdb(folder.path() / "aclImdb") ==
        (folder.path() / "aclImdb/train/neg/8_1.txt").string() +
            ": byte 2: this is not UTF-8; download the file again");
}

TEST_CASE("reviews without one of the parts are an error that names the part") {
  const DataFolder folder;
  std::vector<TarEntry> some = reviews;
  some.pop_back();
  const fs::path archive = folder.write("a.tar.gz", tar(some));
  CHECK(contains(error_of_imdb(archive), "a.tar.gz: test/neg has no review (*.txt)"));
  CHECK(contains(error_of_imdb(folder.path()), ": train/neg has no review (*.txt)"));
}

TEST_CASE("Multi30k is read plain or gzip, and has a validation part") {
  const DataFolder plain;
  const DataFolder packed;
  write_multi30k(plain, "");
  write_multi30k(packed, ".gz");
  Sha256 first;
  Sha256 second;
  const Parts<RawTexts> parts = read_multi30k(packed.path(), first);
  CHECK(parts.train.source == Strings{"Ein train.", "Zwei Männer."});
  CHECK(parts.train.target == Strings{"One train.", "Two men."});
  CHECK(parts.validation.source.front() == "Ein val.");
  CHECK(parts.test.target.front() == "One test_2016_flickr.");
  read_multi30k(plain.path(), second);
  CHECK(first.hex() == second.hex());
}

TEST_CASE("the error for a wrong file of Multi30k names the file") {
  const DataFolder folder;
  write_multi30k(folder, "");
  const auto error = [&] {
    return user_error_of([&] {
      Sha256 hash;
      read_multi30k(folder.path(), hash);
    });
  };
  folder.write("val.en", "One val.\nTwo men.\nThree.\n");
  CHECK(contains(error(), "val.de has 2 lines, but " + (folder.path() / "val.en").string() + " has 3"));
  folder.write("train.en", "One\nTwo m\xe9n.\n");
  CHECK(contains(error(), "train.en: byte 9: this is not UTF-8"));
  fs::remove(folder.path() / "train.de");
  CHECK(contains(error(), "train.de is missing, and so is train.de.gz"));
}
