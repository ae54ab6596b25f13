// Actions of `trainyard data`, as functions that tests can call with their own files.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

#include "models/datasets/published_files.h"

namespace trainyard::tools {

// Print the published files. With `directory`, also the place of each data set in it.
void list_data(const std::optional<std::filesystem::path>& directory, std::ostream& out);

// Download the files of the data set that `directory` lacks.
// - `address` replaces the published address.
// - A file is written as NAME.part, verified and then renamed, so NAME is complete or absent. The same holds
//   for an archive that is unpacked.
// - UserError if the network fails or a file is not the published one. The part of such a file is removed.
void get_data(const models::KnownDataset& known, const std::filesystem::path& directory,
              const std::optional<std::string>& address, std::ostream& out);

// Compare each file of the data set in `directory` with its published digest, and read the data as a run
// does. Prints one line per check. True if nothing is wrong. A missing file is not wrong.
bool verify_data(const std::string& dataset, const std::filesystem::path& directory, std::ostream& out);

}  // namespace trainyard::tools
