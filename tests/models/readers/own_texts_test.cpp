// The user's own texts: class folders, translations, and text files.
#include <doctest/doctest.h>

#include "models/readers/text_readers.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

using Strings = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;

FolderTexts read_classes(const DataFolder& folder) {
  Sha256 hash;
  return read_text_folder(folder.path(), hash);
}

Parts<RawTexts> read_pairs(const DataFolder& folder, const std::string& source_language = "") {
  Sha256 hash;
  return read_text_pairs(folder.path(), source_language, hash);
}

std::string error_of_classes(const DataFolder& folder) {
  return user_error_of([&] { read_classes(folder); });
}

std::string error_of_pairs(const DataFolder& folder, const std::string& source_language = "") {
  return user_error_of([&] { read_pairs(folder, source_language); });
}

}  // namespace

TEST_CASE("texts have the label of their folder, in the order of the folder names") {
  const DataFolder folder;
  folder.write("sport/2.txt", "a match");
  folder.write("sport/1.txt", "a goal");
  folder.write("music/1.txt", "a song");
  folder.write("music/notes.md", "not a sample");
  folder.write(".git/x.txt", "not a class");
  const FolderTexts found = read_classes(folder);
  CHECK(found.classes == 2);
  CHECK(found.parts.train.source == Strings{"a song", "a goal", "a match"});
  CHECK(found.parts.train.labels == Labels{0, 1, 1});
  CHECK(found.parts.test.size() == 0);
  CHECK(text_class_names(folder.path()) == Strings{"music", "sport"});
}

TEST_CASE("texts below train and test are the parts of the data, and more than 256 classes are possible") {
  const DataFolder folder;
  for (int i = 0; i < 300; ++i) folder.write("train/class" + std::to_string(1000 + i) + "/1.txt", "text");
  folder.write("test/class1299/1.txt", "last");
  const FolderTexts found = read_classes(folder);
  CHECK(found.classes == 300);
  CHECK(found.parts.train.labels.back() == 299);
  CHECK(found.parts.test.labels == Labels{299});
  CHECK(found.parts.validation.size() == 0);
  folder.write("test/other/1.txt", "new");
  CHECK(error_of_classes(folder) ==
        (folder.path() / "test/other").string() +
            ": the training part has no class \"other\"; use the same class names "
            "in all parts");
}

TEST_CASE("class folders that cannot be used are an error that names folder, file and byte") {
  const DataFolder folder;
  const std::string place = folder.path().string();
  folder.write("a/1.txt", "text");
  CHECK(error_of_classes(folder) ==
        place + " has one class folder of texts; a classification needs at least two, each with files *.txt");
  folder.write("b/1.txt", "good\xff");
  CHECK(error_of_classes(folder) ==
        place + "/b/1.txt: byte 4: this is not UTF-8; save it as UTF-8, plain or in gzip");
  folder.write("b/1.txt", "good");
  folder.write("c/readme.md", "nothing");
  CHECK(error_of_classes(folder) ==
        place + ": these class folders have no file *.txt: \"c\"; add their texts, or remove the folders");
}

TEST_CASE("translations are read from files of two languages, and the source can be either of them") {
  const DataFolder folder;
  folder.write("train.en", "One.\nTwo.\n");
  folder.write("train.de.gz", "Eins.\r\nZwei.");
  folder.write("validation.de", "Drei.\n");
  folder.write("validation.en", "Three.\n");
  const Parts<RawTexts> parts = read_pairs(folder);
  CHECK(parts.train.source == Strings{"Eins.", "Zwei."});
  CHECK(parts.train.target == Strings{"One.", "Two."});
  CHECK(parts.validation.target == Strings{"Three."});
  CHECK(parts.test.size() == 0);
  const Parts<RawTexts> other = read_pairs(folder, "en");
  CHECK(other.train.source == parts.train.target);
  CHECK(other.train.target == parts.train.source);
  Sha256 forward, backward, packed;
  read_text_pairs(folder.path(), "de", forward);
  read_text_pairs(folder.path(), "en", backward);
  CHECK(forward.hex() != backward.hex());
  CHECK(contains(error_of_pairs(folder, "fr"), "source_language is \"fr\", but "));
  CHECK(contains(error_of_pairs(folder, "fr"), " has the languages de and en"));
}

TEST_CASE("translations that do not fit together are an error with files, lines and counts") {
  const DataFolder folder;
  const std::string place = folder.path().string();
  CHECK(error_of_pairs(folder) == place +
                                      " has files train.LANGUAGE of 0 languages; it must have two, as "
                                      "train.de and train.en");
  folder.write("train.de", "Eins.\nZwei.\n");
  CHECK(contains(error_of_pairs(folder), " has files train.LANGUAGE of 1 language: de; it must have two"));
  folder.write("train.en", "One.\n");
  CHECK(error_of_pairs(folder) == place + "/train.de has 2 lines, but " + place +
                                      "/train.en has 1; line n of one file must be the translation of line n "
                                      "of the other");
  folder.write("train.en", "One.\n \n");
  CHECK(error_of_pairs(folder) ==
        place + "/train.en:2: the line is empty; remove this line from the files of both languages");
  folder.write("train.en", "One.\nTwo\xff.\n");
  CHECK(contains(error_of_pairs(folder), place + "/train.en: byte 8: this is not UTF-8"));
  folder.write("train.en", "One.\nTwo.\n");
  folder.write("test.de", "Drei.\n");
  CHECK(contains(error_of_pairs(folder), place + "/test.en is missing, and so is test.en.gz"));
  folder.write("test.fr", "Trois.\n");
  CHECK(contains(error_of_pairs(folder),
                 place + "/test.fr: the training part has no file of the language \"fr\""));
  folder.write("train.fr", "Un.\nDeux.\n");
  CHECK(contains(error_of_pairs(folder), " has files train.LANGUAGE of 3 languages: de, en, fr"));
}

TEST_CASE("a text is one file, or the files of a folder in the order of their names") {
  const DataFolder folder;
  Sha256 hash;
  CHECK(contains(user_error_of([&] { read_own_text(folder.path(), hash); }), " has no file *.txt"));
  folder.write("b.txt", "second\n");
  folder.write("a.txt.gz", "first");
  folder.write("c.md", "no text");
  CHECK(read_own_text(folder.path(), hash) == "first\nsecond\n");
  CHECK(read_own_text(folder.path() / "c.md", hash) == "no text\n");
  folder.write("b.txt", "\xfe");
  CHECK(contains(user_error_of([&] { read_own_text(folder.path(), hash); }),
                 "b.txt: byte 0: this is not UTF-8"));
}
