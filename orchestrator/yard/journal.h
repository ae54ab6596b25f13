// `journal.jsonl`: what was asked of this yard, one JSON object a line, append-only. A `run` entry has
// `v, type, time, experiment, file, toml, compare, varied, final, keys, strategies` (label by key), `runs`
// (the resolved run by key), `published` (the file that the experiment names, whole and as read),
// `data_profiles` (what its data sets look like) and `asked` (what the command line added: `folder` of the
// file, `data`, `set`, `where`, `exclude_where`), so that `resume` can ask the same again. An `rm` entry has
// `v, type, time, keys` and `attempts`: how many of each key it removes. `db::Ingest::journal_entry` turns
// entries into rows.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/design/experiment.h"

namespace trainyard::orchestrator {

// `asked` holds beside the file; null where nothing does.
nlohmann::json run_entry(const experiments::Experiment& experiment,
                         const std::vector<experiments::ProfiledData>& data = {},
                         const nlohmann::json& asked = nullptr);
nlohmann::json rm_entry(const std::map<std::string, int>& attempts_by_key);

// Appends one line with one write and fsyncs it.
void append_to_journal(const std::filesystem::path& journal, const nlohmann::json& entry);

// What the data sets of an experiment look like, for the journal.

// One for each data set of the runs, in their order; those of `known` are not read again. The runs' data is
// resolved.
std::vector<experiments::ProfiledData> data_profiles(const experiments::Experiment& experiment,
                                                     const std::vector<experiments::ProfiledData>& known);

}  // namespace trainyard::orchestrator
