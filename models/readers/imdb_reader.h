// The Large Movie Review data set.
#pragma once

#include <filesystem>

#include "base/sha256.h"
#include "models/samples/parts.h"
#include "models/samples/raw_texts.h"

namespace trainyard::models {

// The Large Movie Review data set (Maas et al., «Learning word vectors for sentiment analysis», ACL 2011):
// a folder that holds {train,test}/{pos,neg}/*.txt, or an archive .tar, .tar.gz or .tgz of it, which is read
// as it is, not unpacked. Reviews come in the order of part, label (0 negative, 1 positive) and name; their
// names and texts go to `hash`. UserError names file (and entry) and byte: an archive that is cut off, a text
// that is not UTF-8; and says where no review of a part is.
Parts<RawTexts> read_imdb(const std::filesystem::path& folder_or_archive, Sha256& hash);
bool is_archive_name(const std::filesystem::path& file);

}  // namespace trainyard::models
