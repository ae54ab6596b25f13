// The file of published numbers that an experiment file names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/config/diagnostics.h"
#include "experiments/design/reference_results.h"

namespace trainyard::experiments {

// Names that an experiment file knows. A name of the published file that is nearly one of them is mistyped,
// unless its source says with `models` or `arms` that only the text has it.
struct PublishedNames {
  std::vector<std::string> models;  // those a table may have
  std::vector<std::string> arms;    // labels of strategies
};
PublishedNames catalogue_names();  // models and kinds of strategies that are trainyard's

// `name` as the experiment file has it, at `at`, relative to `folder`. What is wrong is reported: with the
// place in the named file where it can be read.
std::optional<Published> read_published(const std::string& name, const Location& at,
                                        const std::filesystem::path& folder, const PublishedNames& names,
                                        Diagnostics& problems);

// From its text; `file` is for messages.
Published published_from_toml(const std::string& text, const std::string& file, const PublishedNames& names,
                              Diagnostics& problems);

}  // namespace trainyard::experiments
