// The file of published numbers that an experiment file names.
#pragma once

#include <filesystem>
#include <optional>

#include "experiments/problems.h"
#include "experiments/published.h"
#include "models/error.h"

namespace trainyard::experiments {

// `name` as the experiment file has it, at `at`, relative to `folder`. What is wrong is reported: with the
// place in the named file where it can be read.
std::optional<Published> read_published(const std::string& name, const Location& at,
                                        const std::filesystem::path& folder, Problems& problems);

// From its text; `file` is for messages.
Published published_from_toml(const std::string& text, const std::string& file, Problems& problems);

}  // namespace trainyard::experiments
