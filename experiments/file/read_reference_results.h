// Reader of the file of published numbers that an experiment file names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/config/diagnostics.h"
#include "experiments/design/reference_results.h"

namespace trainyard::experiments {

// Names that an experiment file knows. A published name that is close to one of them is an error, unless
// `models` or `arms` of its source lists it.
struct PublishedNames {
  std::vector<std::string> models;  // names of models
  std::vector<std::string> arms;    // labels of strategies
};

// Reads the file `name`, relative to `folder`. Errors have a location in that file, or `at` (the line of the
// experiment file) if it cannot be read.
std::optional<Published> read_published(const std::string& name, const Location& at,
                                        const std::filesystem::path& folder, const PublishedNames& names,
                                        Diagnostics& problems);

// As above, from the text of the file. `file` is its name in messages.
Published published_from_toml(const std::string& text, const std::string& file, const PublishedNames& names,
                              Diagnostics& problems);

}  // namespace trainyard::experiments
