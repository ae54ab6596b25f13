// Readers of text data sets: the Large Movie Review data set (IMDb), Multi30k, and a text in one file.
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace trainyard::models
