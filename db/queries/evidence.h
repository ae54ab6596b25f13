// Evidence of how the runs of an experiment were trained, from their records. `reports` checks the
// fair-comparison contract with it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "experiments/protocol/launch.h"

namespace trainyard::db {

// The effective attempt of a run (db/README.md).
struct RunEvidence {
  std::string run_key;
  std::string strategy_kind;     // "ddp"
  std::string data_fingerprint;  // empty if it is not known
  std::string host;
  std::string processor;  // CPU or GPU model
  // Σ weight of the correct predictions, else of the loss: in the last epoch, and in the test. NaN: not known.
  double samples_an_epoch = 0;
  double validation_samples = 0;
  double test_samples = 0;
  double first_loss = std::numeric_limits<double>::quiet_NaN();  // training loss of epoch 1; NaN: not known
  struct Rank {
    std::int64_t rank = 0;
    std::int64_t replica = 0;
    std::string device;
    std::int64_t threads = 0;  // 0: not known
    std::string trainyard_version;
    std::string libtorch_version;
    nlohmann::json start;         // members of the `start` record without a column; null if there are none
    std::int64_t parameters = 0;  // of its stage; 0: not known
  };
  std::vector<Rank> ranks;  // ranks that have written a `start` record
  // By epoch: the hash of its samples in the order of its global batches (`batches` in
  // docs/record-protocol.md), from the first rank that recorded it. No entry if no rank did.
  std::map<std::int64_t, std::string> batches;
};
std::vector<RunEvidence> run_evidence(const Database& database, const std::string& experiment);

// The hash of all parameters after an epoch, of asynchronous servers.
struct RecordedWeights {
  int attempt = 0;
  std::int64_t epoch = 0;
  std::string hash;
};
// The hashes of the epochs that count, in their order. Empty for other runs.
std::vector<RecordedWeights> recorded_weights(const Database& database, const std::string& run_key);

// One rank after one step of the parity check (runner/parity/parity_check.h). Reports derive the verdict
// BROKEN from probes. The plan does not repeat probes that exist.
struct Probe {
  std::string run_key;
  std::int64_t rank = 0;
  // {step, loss, reference_loss, gradient_norm, layers: [{path, gradient_norm, difference, parameter_hash}]},
  // with the layers in order. A value is null if it was not recorded or is not a number. See
  // experiments/protocol/record.h.
  nlohmann::json body;
};

// The probes of each run's latest attempt that did not fail and has probes of every rank. An attempt that
// resumes an interrupted one uses the probes of that attempt. Ordered by run, step and rank, so that the
// first difference comes first.
std::vector<Probe> probes(const Database& database, const std::string& experiment);

// Runs with probes of every rank, each with the circumstances hash of every such attempt.
std::set<std::pair<std::string, std::string>> probed_runs(const Database& database);

// An attempt that a run can resume, from its records.
struct ResumableAttempt {
  int attempt = 0;
  std::int64_t whole_epochs = 0;  // all ranks have recorded epochs 1 … n, here or in resumed attempts
  std::vector<std::int64_t> checkpoints;  // epochs after which rank 0 recorded a checkpoint
  experiments::Circumstances circumstances;
};

// The attempts of a run after its last finished one, oldest first. An attempt with impossible records is not
// resumed, and neither are the attempts before it, because any of them may be wrong.
std::vector<ResumableAttempt> resumable_attempts(const Database& database, const std::string& run_key);

// Runs whose last attempt has finished.
std::set<std::string> runs_with_nothing_to_resume(const Database& database);

}  // namespace trainyard::db
