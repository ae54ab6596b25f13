// How the runs of an experiment were really trained, as far as their records say: what the fair-comparison
// contract is held against after launch. Used by `reports`.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "experiments/protocol/launch.h"

namespace trainyard::db {

// The attempt that counts for a run, see db/README.md.
struct RunEvidence {
  std::string run_key;
  std::string strategy_kind;     // "ddp"
  std::string data_fingerprint;  // empty where it is not known
  std::string host;
  std::string processor;        // CPU or GPU model
  double samples_an_epoch = 0;  // Σ weight of the training loss in the last epoch; NaN: not known
  struct Rank {
    std::int64_t rank = 0;
    std::int64_t replica = 0;
    std::string device;
    std::int64_t threads = 0;  // 0: not known
    std::string trainyard_version;
    std::string libtorch_version;
    nlohmann::json start;  // members of the `start` record that have no column; null where there are none
  };
  std::vector<Rank> ranks;  // those that have written a `start`
  // By epoch the hash of the samples it took, in the order of its global batches, as the first rank that
  // states it has it (`batches` in docs/record-protocol.md); no entry where none does.
  std::map<std::int64_t, std::string> batches;
};
std::vector<RunEvidence> run_evidence(const Database& database, const std::string& experiment);

// What the parity gate found (runner/parity/parity_check.h): for reports, which make the verdict BROKEN of
// it, and for the plan, which does not probe again what was probed.

// What one rank had after a step.
struct Probe {
  std::string run_key;
  std::int64_t rank = 0;
  // {step, loss, reference_loss, gradient_norm, layers: [{path, gradient_norm, difference, parameter_hash}]},
  // layers in their order; null where there is none, or what was recorded is not a number. See
  // experiments/protocol/record.h.
  nlohmann::json body;
};

// Of each run its latest whole ones: those of an attempt that has them of every rank and did not fail. An
// attempt that goes on where another was interrupted relies on what that one found. In the order of runs,
// steps and ranks: what differs first comes first.
std::vector<Probe> probes(const Database& database, const std::string& experiment);

// Runs that have whole probes, each with the hash of the circumstances of every such attempt.
std::set<std::pair<std::string, std::string>> probed_runs(const Database& database);

// What a run can go on from, as its records say.

struct ResumableAttempt {
  int attempt = 0;
  std::int64_t whole_epochs = 0;  // all ranks have recorded epochs 1 … n, here or in what it resumes
  std::vector<std::int64_t> checkpoints;  // epochs of which rank 0 recorded one
  experiments::Circumstances circumstances;
};

// The attempts of a run after its last finished one, oldest first. What ended with impossible records is not
// gone on from, nor what it had gone on from itself: nobody knows which of them is at fault.
std::vector<ResumableAttempt> resumable_attempts(const Database& database, const std::string& run_key);

// Runs whose last attempt has finished.
std::set<std::string> runs_with_nothing_to_resume(const Database& database);

}  // namespace trainyard::db
