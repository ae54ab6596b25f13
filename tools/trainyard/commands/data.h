// What `trainyard data` does, as functions, so that tests can reach it with files of their own.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

#include "models/datasets/published_files.h"

namespace trainyard::tools {

// What is known and, of a directory, which of it is there.
void list_data(const std::optional<std::filesystem::path>& directory, std::ostream& out);

// Gets what `directory` lacks of the data set's files, from `address` instead of its own where that is given.
// A file is written as NAME.part, verified and then renamed, so NAME is there whole or not at all; an archive
// that is kept unpacked likewise. UserError where the network fails, or a file is not the published one (its
// part is removed).
void get_data(const models::KnownDataset& known, const std::filesystem::path& directory,
              const std::optional<std::string>& address, std::ostream& out);

// Holds each file of the data set that is in `directory` against what is known of it, and reads it as a run
// would; one line each. True where nothing is wrong: a file that is not there is not wrong.
bool verify_data(const std::string& dataset, const std::filesystem::path& directory, std::ostream& out);

}  // namespace trainyard::tools
