// Multi30k, German to English.
#pragma once

#include <filesystem>

#include "base/sha256.h"
#include "models/samples/parts.h"
#include "models/samples/raw_texts.h"

namespace trainyard::models {

// Multi30k, task 1, German to English (Elliott et al., «Multi30K: multilingual English-German image
// descriptions», 2016): train, val and test_2016_flickr, each .de and .en, plain or .gz, a sentence a line.
// UserError names file and byte as above, and says where a file is missing or has not as many lines as its
// partner.
Parts<RawTexts> read_multi30k(const std::filesystem::path& folder, Sha256& hash);

}  // namespace trainyard::models
