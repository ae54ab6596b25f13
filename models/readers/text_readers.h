// Readers of two text data sets: the Large Movie Review data set and Multi30k.
//
// The Large Movie Review data set.
#pragma once

#include <filesystem>

#include "base/sha256.h"
#include "models/samples/samples.h"
#include "models/samples/splits.h"

namespace trainyard::models {

// The Large Movie Review data set (Maas et al., «Learning word vectors for sentiment analysis», ACL 2011):
// a folder that holds {train,test}/{pos,neg}/*.txt, or an archive .tar, .tar.gz or .tgz of it, which is read
// as it is, not unpacked. Reviews come in the order of part, label (0 negative, 1 positive) and name; their
// names and texts go to `hash`. UserError names file (and entry) and byte: an archive that is cut off, a text
// that is not UTF-8; and says where no review of a part is.
Parts<RawTexts> read_imdb(const std::filesystem::path& folder_or_archive, Sha256& hash);
bool is_archive_name(const std::filesystem::path& file);

// Multi30k, German to English.

// Multi30k, task 1, German to English (Elliott et al., «Multi30K: multilingual English-German image
// descriptions», 2016): train, val and test_2016_flickr, each .de and .en, plain or .gz, a sentence a line.
// UserError names file and byte as above, and says where a file is missing or has not as many lines as its
// partner.
Parts<RawTexts> read_multi30k(const std::filesystem::path& folder, Sha256& hash);

}  // namespace trainyard::models
