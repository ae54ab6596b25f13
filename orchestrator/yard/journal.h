// `journal.jsonl`: what was asked of this yard, one JSON object per line, append-only.
//
// - A `run` entry has `v, type, time, experiment, file, toml, compare, expect, varied, final, data_seed,
//   keys`, `strategies` (label by key) and `runs` (the resolved run by key). It may have `published` (the
//   published results as read) and `data_profiles`.
// - `asked` in it is what the command line added: `folder` of the file, `data`, `set`, `where` and
//   `exclude_where`. With it `resume` can ask the same again.
// - The last member `crc` seals an entry (experiments/protocol/seal.h).
// - An `rm` entry has `v, type, time, keys` and `attempts`: the number of removed attempts per key.
// - A `retrain` entry has `v, type, time`: finished runs are about to be trained again.
// - Both may have `results`, by key: the results that the runs had (db/queries/earlier_results.h).
// - `db::Ingest::journal_entry` turns entries into rows.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/design/experiment.h"

namespace trainyard::orchestrator {

// `asked`: options in addition to the file. Null if there are none.
nlohmann::json run_entry(const experiments::Experiment& experiment,
                         const std::vector<experiments::ProfiledData>& data = {},
                         const nlohmann::json& asked = nullptr);
nlohmann::json rm_entry(const std::map<std::string, int>& attempts_by_key, const nlohmann::json& results);
nlohmann::json retrain_entry(const nlohmann::json& results);

// Appends one sealed line, then calls fsync. The yard must be locked.
// - Half a line at the end, which a killed writer left, is moved to journal.jsonl.damaged.
// - If the disk is full, the journal keeps its bytes. std::system_error with the cause.
void append_to_journal(const std::filesystem::path& journal, const nlohmann::json& entry);

// Profiles of the data sets of all runs, in order, one per data set. Those in `known` are not read again. The
// data of the runs must be resolved.
std::vector<experiments::ProfiledData> data_profiles(const experiments::Experiment& experiment,
                                                     const std::vector<experiments::ProfiledData>& known);

}  // namespace trainyard::orchestrator
