// `journal.jsonl`: what was asked of this yard, one JSON object a line, append-only. A `run` entry has
// `v, type, time, experiment, file, toml, compare, varied, final, keys, strategies` (label by key) and `runs`
// (the resolved run by key), `published` (the file that the experiment names, whole and as read)
// and `data_profiles` (what its data sets look like). `db::Ingest::journal_entry` turns entries into rows.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "experiments/data_profiles.h"
#include "experiments/file.h"

namespace trainyard::orchestrator {

nlohmann::json run_entry(const experiments::Experiment& experiment,
                         const std::vector<experiments::ProfiledData>& data = {});

// Appends one line with one write and fsyncs it.
void append_to_journal(const std::filesystem::path& journal, const nlohmann::json& entry);

}  // namespace trainyard::orchestrator
