// How the runs of an experiment were really trained, as far as their records say: what the fair-comparison
// contract is held against after launch. Used by `reports`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"

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

}  // namespace trainyard::db
