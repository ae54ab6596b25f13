// Runs of scripts that were recorded without `trainyard run` (docs/python.md). Each is a folder in `recorded/` of a yard, with
// run.json and the records of its ranks. They become runs of an experiment, so that a report needs no experiment file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "orchestrator/yard/yard.h"

namespace trainyard::tools {

inline constexpr const char* recorded_mark = "recorded";  // in `asked` of their journal entries

// Names that these experiments share with those of `trainyard run FILE.py`.
std::string toml_text(const std::string& text);                    // in quotes
std::string model_of_script(const std::filesystem::path& script);  // "train", never a model of the catalogue
std::string processes_name(std::int64_t processes);                // "1-process", "2-processes"

// Adds the runs that have ended since the last call to the yard and its database. Says so on standard error.
// - The script is the model, and the number of processes with the arguments (without --seed) is the strategy. If there
//   are several, they are compared with the first one, by seed.
// - Of runs with the same script, arguments, processes and seed, the plan has the last one.
// - Their times do not count, because nobody kept the host for them.
// - A folder that cannot be read is named and left out. So is a run that is still being recorded.
void add_recorded_runs(const orchestrator::Yard& yard);

}  // namespace trainyard::tools
