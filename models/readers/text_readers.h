// Readers of text data sets: the Large Movie Review data set (IMDb), Multi30k, a text in one file, and texts of
// the user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "models/samples/samples.h"
#include "models/samples/splits.h"

namespace trainyard::models {

// Read the Large Movie Review data set: Maas et al., "Learning word vectors for sentiment analysis", ACL
// 2011.
// - It is a folder with {train,test}/{pos,neg}/*.txt, or an archive of it (.tar, .tar.gz, .tgz). Archives are
//   not unpacked.
// - Reviews are ordered by part, label (0 negative, 1 positive) and name. Names and texts are added to
//   `hash`.
// - UserError: a truncated archive, a text that is not UTF-8, a part without reviews.
Parts<RawTexts> read_imdb(const std::filesystem::path& folder_or_archive, Sha256& hash);
bool is_archive_name(const std::filesystem::path& file);

// Read Multi30k, task 1, German to English: Elliott et al., "Multi30K: multilingual English-German image
// descriptions", 2016.
// - The files are train, val and test_2016_flickr, each with .de and .en, plain or .gz. Each line is one
//   sentence.
// - UserError: a missing file, a text that is not UTF-8, different numbers of lines in .de and .en.
Parts<RawTexts> read_multi30k(const std::filesystem::path& folder, Sha256& hash);

// Read the text `name` in `folder`, plain or .gz. Its name and content are added to `hash`.
// UserError: a missing file, a text that is not UTF-8.
std::string read_whole_text(const std::filesystem::path& folder, const std::string& name, Sha256& hash);

// Read the user's own texts: class folders with *.txt files (class_folders.h). Names and texts are added to
// `hash`.
// UserError: as `find_class_folders`, only one class, a text that is not UTF-8.
struct FolderTexts {
  Parts<RawTexts> parts;
  std::int64_t classes = 0;
};
FolderTexts read_text_folder(const std::filesystem::path& folder, Sha256& hash);
std::vector<std::string> text_class_names(const std::filesystem::path& folder);
bool holds_text_classes(const std::filesystem::path& folder);  // checks file names only

// Read the user's own translations, as Moses and OPUS write them.
// - The files are train.LANGUAGE, and perhaps validation.LANGUAGE (or valid, val, dev) and test.LANGUAGE, for
//   two languages, plain or .gz. Each line is one sentence.
// - `source_language`: the one that is read; empty: the first of both names. The model gives the other one.
// - Languages and texts are added to `hash`.
// - UserError: other than two languages, a missing file, different numbers of lines, an empty line, a text that
//   is not UTF-8.
Parts<RawTexts> read_text_pairs(const std::filesystem::path& folder, const std::string& source_language,
                                Sha256& hash);
bool holds_text_pairs(const std::filesystem::path& folder);  // checks file names only

// Read the user's own text: one file, or the *.txt and *.txt.gz files of a folder in the order of their names.
// - A file that does not end with a line break gets one. Names and texts are added to `hash`.
// - UserError: no file, a text that is not UTF-8.
std::string read_own_text(const std::filesystem::path& file_or_folder, Sha256& hash);
bool holds_own_text(const std::filesystem::path& file_or_folder);  // checks file names only

}  // namespace trainyard::models
